import { mkdirSync, writeFileSync } from "node:fs";
import { cpus, totalmem } from "node:os";
import { dirname } from "node:path";
import { READ_ON } from "../cost/prices.ts";
import { readCost } from "./cost.ts";
import type { CallCounts } from "./count-reads.ts";
import type { Result } from "./results.ts";
import { lines, table, whole } from "./table.ts";

const MIB = 2 ** 20;
/** With digests every 8 hours, and without once a week. */
const RUNS_OF_A_MONTH = { digests: 90, all: 30 / 7 };

/** Of what was kept: figures in tables, and what they mean. */
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
  return lines(
    "# Verification, measured",
    "",
    "Written by `npm run bench:verification`, of commit " +
      `${commits}. ${cpus().length} cores (${cpu?.model ?? "unknown"}), ${Math.round(totalmem() / 2 ** 30)} GiB, shared with other work: compare seconds within a table`,
    "only; counts are the same everywhere. A table in Debian's PostgreSQL, as it is shipped, and as many claims in a coordinator with 16 shards, as `npm start` runs it.",
    "Drift is planted by plain SQL, evenly spread over the ids: a third of it renamed rows, a third deleted ones, a third other spellings.",
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
    "## Comparing",
    "",
    "Dry runs; drift that was planted is found by both, to the last row.",
    "",
    table(head, rows, 2),
    "",
    "- **Without drift** one digest stands for 64 records, and no record is sent. Nearly all that is left is the reading and hashing of rows on both sides.",
    "- **With little drift** one row costs the records of its range, 64 of them, and one list, one after the other. With 1 row in 1,000 that is about a sixteenth of all records.",
    "- **With 1 row in 10** each range of 64 rows has some: all ranges differ, neighbours are read as one, and the digests were asked for in vain. That costs what they cost without",
    "  drift, and nothing else. Drift that clusters, as the rows of one import do, touches fewer ranges.",
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
    "given up",
    "leases",
    "records sent, 1st pass",
    "digest calls",
    "lists",
    "CPU s, cell",
    "CPU s, coordinator",
  ];
  const again = ofPart(results, "again");
  return lines(
    "## Repairing",
    "",
    `With \`apply: true\` and digests, in two passes. A run after it, with digests and without, found nothing (${again.length} runs).`,
    "",
    table(head, rows, 1),
    "",
    "Drifts of a stretch of 16,384 rows share leases of up to 500 claims. The second pass, which gives up, reads its part again: lists and digest calls are those of both.",
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
    "cell after a tenth",
    "at the end",
    "peak",
    "runtime before",
    "after",
    "peak",
  ];
  return lines(
    "## Memory",
    "",
    "Resident MiB of the process that verifies, which is Node with `--max-old-space-size=256 --max-semi-space-size=16`, and of the coordinator's runtime with all its objects.",
    "",
    table(head, rows, 3),
    "",
    "Some 140 MiB of the former are there before the first row: Node, which strips the types of all that it loads from the sources.",
    "A verification has a page of rows and one of records in memory, and 256 sums: it needs as much at the end as after a tenth.",
    "What a stretch found is kept until it fills a lease. The runtime is one process for all runs, in the order of the table, with 16 shards of 62,500 claims each.",
    "An old space of 128 MiB with the usual young generation is no good: Node collects all the time then, and takes several times as long.",
    ...(runs.every(({ peakMib }) => Number.isFinite(peakMib))
      ? []
      : ["A peak that is blank was not measured."]),
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
    "left otherwise",
    "leases",
    "calls",
    "CPU s, cell",
    "CPU s, coordinator",
  ];
  const examples = (run.examples ?? []).map((example) => `- \`${example}\``);
  return lines(
    "## Backfill",
    "",
    "All names are missing: leases of 500 claims, one after the other, each a local transaction that locks its rows. The time is the coordinator's durable writes.",
    "",
    table(head, rows, 0),
    ...(examples.length === 0
      ? ["", `None of ${run.isGivenList === true ? "the given names" : "the made names"} was refused.`]
      : ["", "What a person has to decide, for example:", "", ...examples]),
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
    "One stream, gone on with every 50,000 records, over which nothing is kept.",
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
    "## What it costs",
    "",
    `One run at list prices of ${READ_ON}, beyond what a plan includes, from what a Worker that counts read for one call of each kind; no row is written. Digests are read from`,
    "the index alone, at one row for each claim and one for each range and shard; a list reads 1.4 rows for each that it sends, because no shard knows the others' share. Every",
    "call of digests or of a list asks all shards, however little there is to print: at 0.1 %, evenly spread, a run has as many calls as one that reads everything, in less time.",
    "",
    table(["run", "requests", "calls of objects", "rows read", "USD"], rows, 1),
    "",
    `A month with digests every 8 hours and all records once a week: USD ${month.toFixed(2)}. The objects that are awake meanwhile come on top. A lease that repairs costs what any lease does: [results.md](results.md).`,
  );
}
