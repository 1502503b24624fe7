import type { Context } from "../framework/context.ts";
import { exitCodes, type ExitCode } from "../framework/command-error.ts";
import { fields, table } from "../output/table.ts";
import type { Result } from "../output/result.ts";
import { countOf } from "../../common/text/count-of.ts";
import { commandLine } from "../../common/text/shell-word.ts";
import { compare, type Comparison } from "./compare.ts";
import type { SectionDigest } from "./format.ts";
import { readBackup, type Backup } from "./read-backup.ts";

/** Checks a file, and compares it with the deployment if wanted. */
export async function verifyBackup(
  context: Context,
  path: string,
  { online }: { online?: boolean },
): Promise<Result> {
  const backup = await readBackup(path);
  await backup.check();
  const comparison = online === true ? await compare(context.io, await context.client(), backup) : undefined;
  return backupResult(backup, comparison);
}

/** What a backup has, and how it compares with the deployment. */
export function backupResult(backup: Backup, comparison: Comparison | undefined): Result {
  const { path, header, found, end } = backup;
  const claims = end?.claims ?? [];
  return {
    document: {
      file: path,
      created_at: header.created_at,
      ...found,
      claims,
      comparison: comparison ?? null,
    },
    text: (style) =>
      [
        fields([
          ["file", path],
          ["begun", header.created_at],
          ["claims", claims.reduce((sum, { count }) => sum + count, 0)],
          ["open leases", found.leases],
          ["checkpoint", found.checkpoint],
          ["sha256", found.sha256],
        ]),
        ...(claims.length === 0 ? [] : [table(claims, COLUMNS, style)]),
      ].join("\n\n"),
    notes: comparison === undefined ? ["The file was not compared with a deployment."] : notesOf(comparison),
    nextSteps: comparison === undefined ? [`${commandLine("backup", "verify", path)} --online`] : [],
    exitCode: exitCodeOf(comparison),
  };
}

/** What could not be compared is not known to be right. */
export function exitCodeOf(comparison: Comparison | undefined): ExitCode {
  if (comparison === undefined) return exitCodes.ok;
  const { different, held, is_outdated: isOutdated } = comparison;
  if (different.length > 0 && !isOutdated) return exitCodes.drift;
  return held > 0 || isOutdated ? exitCodes.failed : exitCodes.ok;
}

function notesOf({ verified, changed, held, different, is_outdated: isOutdated }: Comparison): string[] {
  const notes = [
    `${countOf(verified, "range")} of claims ${verified === 1 ? "is" : "are"} the same in the deployment.`,
  ];
  if (changed > 0)
    notes.push(`${countOf(changed, "range")} changed meanwhile, as the changes after the backup say.`);
  if (held > 0) notes.push(`${countOf(held, "range")} could not be compared: open leases touch them.`);
  if (isOutdated)
    notes.push(
      `${countOf(different.length, "range")} changed after the backup. The deployment no longer has these ` +
        "changes, so nobody can say whether they are right.",
    );
  else
    for (const { cell_id: cell, source_type: source, after, through } of different.slice(0, 10))
      notes.push(
        `Cell ${cell}, ${source}, ids after ${after ?? "the beginning"} to ${through ?? "the end"}: the ` +
          "deployment has other claims than the backup.",
      );
  return notes;
}

const COLUMNS = [
  { title: "CELL", value: ({ cell_id: cell }: SectionDigest) => cell },
  { title: "SOURCE", value: ({ source_type: source }: SectionDigest) => source },
  { title: "CLAIMS", value: ({ count }: SectionDigest) => count, isNumber: true },
];
