import { readTypesFile } from "../files/types-file.ts";
import { gitlabTypes } from "../../common/types/gitlab.ts";
import { checkRules, type RuleProblem } from "../../users/router/rules/check.ts";
import { messageOf, usageError, exitCodes } from "../framework/command-error.ts";
import type { Context } from "../framework/context.ts";
import { escapeControls } from "../../common/text/escape.ts";
import type { Result } from "../output/result.ts";
import { readRules } from "./read-rules.ts";

type FileProblem = RuleProblem & { file: string };

/** Finds mistakes in routing rules before a router uses them. docs/reference/routing-rules.md lists them. */
export async function checkRoutes(
  _context: Context,
  files: readonly string[],
  options: { types?: string },
): Promise<Result> {
  // The analysis of regular expressions is large, so only this command loads it.
  const { slowExpressions } = await import("./slow-expressions.ts");
  const checks = { bucketTypes: await bucketTypes(options.types), slowness: slowExpressions() };
  const findings: FileProblem[] = [];
  for (const file of files)
    for (const problem of checkRules(await readRules(file), checks)) findings.push({ file, ...problem });
  return {
    document: { findings },
    lines: findings,
    text: () => findings.map((each) => escapeControls(lineOf(each))).join("\n"),
    exitCode: findings.length > 0 ? exitCodes.failed : exitCodes.ok,
  };
}

async function bucketTypes(file: string | undefined): Promise<string[]> {
  if (file === undefined) return Object.keys(gitlabTypes.bucket_types);
  const types = await readTypesFile(file).catch((error: unknown) => {
    throw usageError(messageOf(error));
  });
  return Object.keys(types.bucket_types);
}

function lineOf({ file, field, rule, kind, message }: FileProblem): string {
  const id = rule === null || field.startsWith(`${rule}.`) || rule === field ? "" : ` (${rule})`;
  return `${file}: ${field}${id}: ${kind}: ${message}`;
}
