import { isLeaseholdError, type ScrubStatus } from "../../users/client/index.ts";
import { commandLine } from "../../common/text/shell-word.ts";
import { messageOf, exitCodes } from "../framework/command-error.ts";
import type { Context } from "../framework/context.ts";
import { take, type Result } from "../output/result.ts";
import { table } from "../output/table.ts";
import { readShards } from "../shards/shards.ts";

interface ScrubOptions {
  run?: boolean;
}

type Pass = NonNullable<ScrubStatus["last"]>;
type Finding = Pass["findings"][number];

/** What is known of one part. Without a status, it could not be asked. */
interface Scrubbed {
  part: string;
  status: ScrubStatus | null;
  failure: string | null;
}

/** A deployment has at most 1,000 cells. */
const MAX_CELLS = 1_000;

/** A shard with a billion rows has fewer steps. */
const MAX_STEPS = 1_000_000;

export async function scrub(
  context: Context,
  given: readonly string[],
  { run = false }: ScrubOptions,
): Promise<Result> {
  const parts = given.length > 0 ? given : await allParts(context);
  const scrubbed: Scrubbed[] = [];
  for (const part of parts) {
    context.io.signal.throwIfAborted();
    scrubbed.push(await scrubOne(context, part, run));
  }
  const findings = scrubbed.flatMap(({ part, status }) =>
    passesOf(status).flatMap((pass) => pass.findings.map((finding) => ({ part, finding }))),
  );
  const found = scrubbed.flatMap(({ status }) => passesOf(status)).reduce((sum, pass) => sum + pass.found, 0);
  const failed = scrubbed.filter(({ failure }) => failure !== null);
  return {
    document: { found, parts: scrubbed },
    lines: scrubbed,
    text: (style) =>
      [
        table(
          scrubbed,
          [
            { title: "PART", value: ({ part }) => part },
            { title: "STATE", value: ({ status }) => status?.state ?? "UNREACHABLE" },
            { title: "LAST PASS", value: ({ status }) => status?.last?.ended_at ?? "never" },
            { title: "ROWS", value: ({ status }) => status?.last?.rows ?? 0, isNumber: true },
            { title: "UNCHECKED", value: ({ status }) => status?.last?.unchecked ?? 0, isNumber: true },
            { title: "FOUND", value: ({ status }) => foundBy(status), isNumber: true },
          ],
          style,
        ),
        ...findings.map(({ part, finding }) => describe(part, finding)),
      ].join("\n"),
    notes: [
      ...failed.map(({ part, failure }) => `${part}: ${failure}`),
      ...(found > findings.length ? [`${found - findings.length} more findings are only counted.`] : []),
    ],
    nextSteps:
      found > 0 && !run
        ? [`${commandLine("scrub", ...new Set(findings.map(({ part }) => part)))} --run`]
        : [],
    exitCode: found === 0 && failed.length === 0 ? exitCodes.ok : exitCodes.failed,
  };
}

/** The shards, and the ledgers of the cells. */
async function allParts(context: Context): Promise<string[]> {
  const client = await context.client();
  const { shards } = await readShards(context);
  const { items } = await take(client.cells.list(), MAX_CELLS);
  return [
    ...Array.from({ length: shards }, (_, index) => `shard-${index}`),
    ...items.map(({ cell_id: id }) => `ledger-${id}`),
  ];
}

/** A part that can't be asked fails nothing else, unless the key or the part is wrong. */
async function scrubOne(context: Context, part: string, isRun: boolean): Promise<Scrubbed> {
  const { parts } = await context.client();
  try {
    const status = isRun ? await runPass(context, part) : await parts.scrubStatus(part);
    return { part, status, failure: null };
  } catch (error) {
    if (!isLeaseholdError(error) || error.code !== "UNAVAILABLE") throw error;
    return { part, status: null, failure: messageOf(error) };
  }
}

async function runPass(context: Context, part: string): Promise<ScrubStatus> {
  const { parts } = await context.client();
  let status = await parts.scrub(part, { restart: true });
  for (let steps = 1; status.running !== null && steps < MAX_STEPS; steps += 1) {
    context.io.signal.throwIfAborted();
    status = await parts.scrub(part, { restart: false });
  }
  return status;
}

const passesOf = (status: ScrubStatus | null): Pass[] =>
  [status?.last, status?.running].filter((pass) => pass !== null && pass !== undefined);

const foundBy = (status: ScrubStatus | null): number =>
  passesOf(status).reduce((sum, { found }) => sum + found, 0);

/** Names are hostile text, so they are quoted. */
function describe(part: string, { kind, bucket, missing, ...finding }: Finding): string {
  const what =
    bucket === null
      ? `lease ${finding.lease_uuid}`
      : `${bucket.type ?? "an unknown type"} ${JSON.stringify(bucket.canonical)}`;
  const lacks = missing === null ? "" : `; shard-${missing.shard} lacks ${missing.holds} of its holds`;
  return `${part}: ${kind} in ${finding.table}: ${what} of cell ${finding.cell_id}${lacks}`;
}
