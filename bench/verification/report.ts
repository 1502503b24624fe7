import { mkdirSync, writeFileSync } from "node:fs";
import { cpus, totalmem } from "node:os";
import { dirname } from "node:path";
import { READ_ON } from "../cost/prices.ts";
import { readCost } from "./cost.ts";
import type { CallCounts } from "./count-reads.ts";
import type { Result } from "./results.ts";
import { lines, table, whole } from "./table.ts";

const MIB = 2 ** 20;
/** The runs of a month: with digests every 8 hours, and with all records once a week. */
const RUNS_OF_A_MONTH = { digests: 90, all: 30 / 7 };

/** Writes the report of the stored results to `path`: tables of figures, with an explanation of each. */
export function writeReport(kept: readonly Result[], counted: readonly CallCounts[], path: string): void {
  const results = kept.toSorted((a, b) => orderOf(a) - orderOf(b));
  mkdirSync(dirname(path), { recursive: true });
  const sections = [
    heading(results),
    comparing(results),
    repairing(results),
    memory(results),
    backfill(results),
    exported(results),
    cost(results, counted),
  ];
  writeFileSync(path, `${sections.filter(Boolean).join("\n\n")}\n`);
}

const ORDER: readonly Result["part"][] = ["export", "compare", "repair", "again", "backfill"];
const orderOf = ({ part, drift, digests }: Result): number =>
  ORDER.indexOf(part) * 10 + (drift === 0 ? 0 : 6 - Math.log10(drift)) + (digests ? 0 : 0.5);

const driftOf = ({ drift }: Result): string => (drift === 0 ? "none" : `${100 / drift} %`);
const howOf = ({ digests }: Result): string => (digests ? "digests" : "all records");
const rate = ({ rows, seconds }: Result): string => whole(rows / seconds);
const calls = ({ calls: made }: Result, ...names: string[]): string =>
  whole(names.reduce((sum, name) => sum + (made[name] ?? 0), 0));
const ofPart = (results: readonly Result[], ...parts: Result["part"][]): Result[] =>
  results.filter(({ part }) => parts.includes(part));

function heading(results: readonly Result[]): string {
  const [cpu] = cpus();
  const commits = [...new Set(results.map(({ commit }) => commit))].join(", ");
  const memoryGib = Math.round(totalmem() / 2 ** 30);
  return lines(
    "# Verification benchmark",
    "",
    `\`npm run bench:verification\` generates this page. Commit: ${commits}. Machine:`,
    `${cpus().length} cores (${cpu?.model ?? "unknown"}), ${memoryGib} GiB, shared with other work. ` +
      "Compare times only within a table.",
    "Counts are the same on every machine.",
    "",
    "The cell has one table in Debian's PostgreSQL with its default settings. The coordinator runs as with",
    "`npm start`, with 16 shards, and has one claim per row. Plain SQL adds the drift, evenly spread over",
    "the ids: a third of the drifted rows are renamed, a third deleted, and a third spelled differently.",
  );
}

function comparing(results: readonly Result[]): string {
  const runs = ofPart(results, "compare");
  if (runs.length === 0) return "";
  const rows = runs.map((run) => [
    driftOf(run),
    howOf(run),
    run.seconds.toFixed(0),
    rate(run),
    whole(run.counts?.records ?? 0),
    (run.bytes / MIB).toFixed(1),
    calls(run, "digestRecords"),
    calls(run, "listRecords"),
    calls(run, "lookupRecords"),
    run.cpuSeconds.toFixed(0),
    run.coordinatorCpuSeconds.toFixed(0),
  ]);
  const head = [
    "drift",
    "compared",
    "seconds",
    "rows/s",
    "records sent",
    "MiB received",
    "digest calls",
    "lists",
    "lookups",
    "CPU s, cell",
    "CPU s, coordinator",
  ];
  return lines(
    "## Comparison",
    "",
    "These are dry runs. Both methods find exactly the rows that drifted.",
    "",
    table(head, rows, 2),
    "",
    "- **Without drift**, one digest stands for 64 records, and no record is sent. Both sides spend nearly",
    "  all of the time on reading and hashing rows.",
    "- **With 1 row in 1,000**, each drifted row costs one list call for the 64 records of its range. The",
    "  calls run one after the other. In total they send about a sixteenth of all records.",
    "- **With 1 row in 10**, every range of 64 rows has drift. All ranges differ, so the run lists adjacent",
    "  ranges together and gains nothing from the digests. The digests cost as much as without drift.",
    "",
    "Clustered drift, such as the rows of one import, touches fewer ranges.",
  );
}

function repairing(results: readonly Result[]): string {
  const runs = ofPart(results, "repair");
  if (runs.length === 0) return "";
  const rows = runs.map((run) => [
    driftOf(run),
    run.seconds.toFixed(0),
    whole(run.counts?.created ?? 0),
    whole(run.counts?.replaced ?? 0),
    whole(run.counts?.destroyed ?? 0),
    calls(run, "beginLease"),
    whole(run.counts?.records ?? 0),
    calls(run, "digestRecords"),
    calls(run, "listRecords"),
    run.cpuSeconds.toFixed(0),
    run.coordinatorCpuSeconds.toFixed(0),
  ]);
  const head = [
    "drift",
    "seconds",
    "created",
    "replaced",
    "destroyed",
    "leases",
    "records sent, 1st pass",
    "digest calls",
    "lists",
    "CPU s, cell",
    "CPU s, coordinator",
  ];
  const again = ofPart(results, "again");
  return lines(
    "## Repair",
    "",
    "These runs have `apply: true` and use digests. They make two passes. Later dry runs, with and without",
    `digests, found no drift (${again.length} runs).`,
    "",
    table(head, rows, 1),
    "",
    "The repairs of a segment of 16,384 rows share leases of up to 500 claims. The second pass releases",
    "names, and compares again. The numbers of lists and digest calls include both passes.",
  );
}

function memory(results: readonly Result[]): string {
  const runs = results.filter(({ part }) => part !== "again");
  if (runs.length === 0) return "";
  const rows = runs.map((run) => {
    const { before, after } = run.coordinator;
    const figures = [run.earlyMib, run.endMib, run.peakMib, before.nowMib, after.nowMib, after.peakMib].map(
      (mib) => (Number.isFinite(mib) ? mib.toFixed(0) : ""),
    );
    return [run.part, driftOf(run), run.part === "export" ? "" : howOf(run), ...figures];
  });
  const head = [
    "",
    "drift",
    "compared",
    "cell at 10 %",
    "cell at the end",
    "cell peak",
    "runtime before",
    "runtime after",
    "runtime peak",
  ];
  return lines(
    "## Memory",
    "",
    'Resident memory in MiB. "Cell" is the process that verifies: Node with',
    '`--max-old-space-size=256 --max-semi-space-size=16`. "Runtime" is the workerd process of the',
    "coordinator with all its objects.",
    "",
    table(head, rows, 3),
    "",
    "- The cell uses about 140 MiB before the first row, because Node loads the TypeScript sources and",
    "  strips their types.",
    "- A verification has one page of rows, one page of records and 256 digests in memory, so it needs no",
    "  more at the end than at 10 %. It keeps the drift of a segment until it fills a lease.",
    "- One runtime process serves all runs, in the order of the table. It has 16 shards of 62,500 claims",
    "  each.",
    "- An old space of 128 MiB with the default young generation is too small. Node then collects garbage",
    "  all the time, and a run takes several times as long.",
    ...(runs.every(({ peakMib }) => Number.isFinite(peakMib)) ? [] : ["- A blank peak was not measured."]),
  );
}

function backfill(results: readonly Result[]): string {
  const [run] = ofPart(results, "backfill");
  if (run?.counts === undefined) return "";
  const { counts } = run;
  const rows = [
    [
      whole(run.rows),
      run.seconds.toFixed(0),
      rate(run),
      whole(counts.created),
      whole(counts.duplicates),
      whole(counts.unnameable),
      whole(counts.changed + counts.recent + counts.leased),
      calls(run, "beginLease"),
      whole(Object.values(run.calls).reduce((sum, count) => sum + count, 0)),
      run.cpuSeconds.toFixed(0),
      run.coordinatorCpuSeconds.toFixed(0),
    ],
  ];
  const head = [
    "names",
    "seconds",
    "rows/s",
    "claimed",
    "duplicates",
    "unnameable",
    "skipped otherwise",
    "leases",
    "calls",
    "CPU s, cell",
    "CPU s, coordinator",
  ];
  const examples = (run.examples ?? []).map((example) => `- \`${example}\``);
  return lines(
    "## Backfill",
    "",
    "All names are missing at the start. The backfill takes leases of 500 claims, one after the other, each",
    "in a local transaction that locks its rows. The coordinator's durable writes take most of the time.",
    "",
    table(head, rows, 0),
    ...(examples.length === 0
      ? ["", `None of the ${run.isGivenList === true ? "given" : "generated"} names was refused.`]
      : ["", "Names that need a decision by a person, for example:", "", ...examples]),
  );
}

function exported(results: readonly Result[]): string {
  const [run] = ofPart(results, "export");
  if (run === undefined) return "";
  const figures = [
    whole(run.rows),
    run.seconds.toFixed(0),
    rate(run),
    (run.bytes / MIB).toFixed(0),
    calls(run, "exportRecords"),
    run.peakMib.toFixed(0),
  ];
  return lines(
    "## Export",
    "",
    table(["records", "seconds", "records/s", "MiB received", "calls", "peak MiB"], [figures], 0),
    "",
    "The export is one stream. It continues with a new call every 50,000 records, and keeps no record in",
    "memory.",
  );
}

function cost(results: readonly Result[], counted: readonly CallCounts[]): string {
  const runs = ofPart(results, "compare", "export");
  const priced = runs.flatMap((run) => {
    const its = readCost(run, counted);
    return its === undefined ? [] : [{ run, its }];
  });
  if (priced.length === 0) return "";
  const rows = priced.map(({ run, its }) => [
    run.part === "export" ? "export" : `${driftOf(run)}, ${howOf(run)}`,
    whole(its.workerRequests),
    whole(its.objectRequests),
    whole(its.rowsRead),
    its.usd.toFixed(4),
  ]);
  const usdOf = (digests: boolean): number =>
    priced.find(({ run }) => run.part === "compare" && run.drift === 0 && run.digests === digests)?.its.usd ??
    Number.NaN;
  const month = RUNS_OF_A_MONTH.digests * usdOf(true) + RUNS_OF_A_MONTH.all * usdOf(false);
  return lines(
    "## Costs",
    "",
    `The cost of one run at list prices of ${READ_ON}, without the usage that a plan includes.`,
    "It is computed from the rows that a counting Worker read for one call of each kind. No row is written.",
    "",
    "- A digest call reads only the index: one row per claim, and one row per range and shard.",
    "- A list reads 1.4 rows for each record that it sends, because a shard does not know how many of the",
    "  records come from the other shards.",
    "- Each digest or list call goes to all shards, even for few records. With drift of",
    "  0.1 %, evenly spread, a run makes as many calls as one that reads everything, but takes less time.",
    "",
    table(["run", "requests", "object calls", "rows read", "USD"], rows, 1),
    "",
    `A month with digests every 8 hours and all records once a week costs USD ${month.toFixed(2)}.`,
    "The duration for which the objects are awake is billed in addition.",
    "A lease that repairs drift costs as much as any lease; see [counts.md](counts.md).",
  );
}
