import type { Facts } from "./differences.ts";
import { LANES } from "./claiming.ts";
import type { ScenarioResult } from "./scenario.ts";
import { renderTable, thousands, type Table } from "./table.ts";
import { conflictKinds, type CellCounts } from "./cell-counts.ts";
import { percentile, requestKinds } from "./timed-fetch.ts";
import { cellIds, type Environment } from "./environment.ts";

const MOST_DIFFERENCES = 50;
const FIRST_WIDTH = 46;

/** Renders what happened as tables. */
export function renderReport(
  environment: Environment,
  result: ScenarioResult,
  facts: Facts,
  seconds: number,
): string[] {
  const { timings, lostAnswers, lostGrants, workload, seed } = environment;
  const requests = `${thousands(timings.count)} requests over HTTP in ${seconds.toFixed(1)} s`;
  const executed = "were lost after the coordinator had executed the request";
  const show = (table: Body): string[] => ["", ...renderTable({ ...table, firstWidth: FIRST_WIDTH })];
  return [
    `${thousands(workload.names.length)} real names, two cells, ${requests} (seed ${seed})`,
    ...show(names(environment, result)),
    ...show(calls(environment)),
    `${thousands(lostAnswers)} answers ${executed}, ${thousands(lostGrants)} of them successes.`,
    "The cells repeated each of these calls with the same UUID.",
    ...show(conflicts(environment, result)),
    ...show(recovery(result)),
    "Two reconciliations in parallel may count the same lease. Deciding it twice changes nothing.",
    ...show(latencies(environment)),
    "",
    ...summary(facts),
  ];
}

/** Renders the result of the check, which also decides the exit code. */
export function renderConclusion(differences: readonly string[]): string[] {
  if (differences.length === 0)
    return ["CHECK PASSED: every name has at most one owner, and both cells agree with the coordinator."];
  const noun = differences.length === 1 ? "difference" : "differences";
  const shown = differences.slice(0, MOST_DIFFERENCES).map((difference) => `  ${difference}`);
  const more =
    differences.length > shown.length ? [`  … and ${thousands(differences.length - shown.length)} more`] : [];
  return [`CHECK FAILED: ${thousands(differences.length)} ${noun}`, ...shown, ...more];
}

type Body = Omit<Table, "firstWidth">;

const head = ["cell 1", "cell 2", "both"];

const sums = (environment: Environment, rows: [string, (counts: CellCounts) => number][]): Body["rows"] =>
  rows.map(([what, of]) => {
    const [one, two] = [of(environment.counts["1"]), of(environment.counts["2"])];
    return [what, one, two, one + two];
  });

function names(environment: Environment, { won, cells }: ScenarioResult): Body {
  const { orders, contested } = environment.workload;
  const alone = cellIds.map((id) => orders[id].length - contested.size);
  const row = (what: string, one: number, two: number): Body["rows"][number] => [what, one, two, one + two];
  return {
    title: "NAMES",
    head,
    rows: [
      row("wanted by this cell alone", alone[0] ?? 0, alone[1] ?? 0),
      row("  won", won["1"].alone, won["2"].alone),
      ["wanted by both cells", contested.size, contested.size, contested.size],
      row("  won", won["1"].contested, won["2"].contested),
      ...sums(environment, [
        ["  lost to the other cell", (counts) => counts.lost],
        ["destroyed later", (counts) => counts.destroyed],
        ["renamed", (counts) => counts.renamed],
        ["changed in case only (a replace)", (counts) => counts.recased],
        ["won later, after the other cell destroyed it", (counts) => counts.wonLater],
      ]),
      row("owned at the end", cells["1"].database.entries().length, cells["2"].database.entries().length),
    ],
  };
}

const calls = (environment: Environment): Body => ({
  title: "LEASES",
  head,
  rows: sums(environment, [
    ["granted", (counts) => counts.leasesGranted],
    ["  creates in them", (counts) => counts.creates],
    ["  destroys in them", (counts) => counts.destroys],
    ["  replaces in them", (counts) => counts.replaces],
    ["committed by the process that began them", (counts) => counts.committed],
    ["rolled back: the cell's own database refused", (counts) => counts.localFailures],
    ["refused, with the whole batch", (counts) => counts.refused],
    ["no answer in time, rolled back", (counts) => counts.unknown],
  ]),
});

const conflictWords: Record<(typeof conflictKinds)[number], string> = {
  taken: "taken: another claim has the name",
  leased: "leased: another lease holds the name",
  not_owner: "not_owner: another cell has the name",
  absent: "absent: nobody has the name",
  mismatch: "mismatch: the cell's own, but wrong source",
};

const conflicts = (environment: Environment, { provoked }: ScenarioResult): Body => ({
  title: `CONFLICTS (${provoked} batches had to be refused)`,
  head,
  rows: sums(
    environment,
    conflictKinds.map((kind) => [conflictWords[kind], (counts) => counts.conflicts.get(kind) ?? 0]),
  ),
});

const recovery = ({ crashes, recovery: runs }: ScenarioResult): Body => ({
  title: `RECOVERY (left: ${crashes.begun} begun, ${crashes.saved} saved, ${crashes.committed} committed)`,
  head: ["seen", "commits", "rollbacks", "pending", "orphans"],
  rows: runs.map(({ what, counters }) => [
    what,
    counters.processed,
    counters.committed,
    counters.rolledBack,
    counters.pending,
    counters.orphaned,
  ]),
});

const latencies = ({ timings }: Environment): Body => ({
  title: `LATENCY PER REQUEST, ms (${LANES} in parallel per cell)`,
  head: ["count", "p50", "p95", "p99", "max"],
  rows: requestKinds.flatMap((kind) => {
    const sorted = timings.of(kind);
    const at = (share: number): string => percentile(sorted, share).toFixed(1);
    return sorted.length === 0 ? [] : [[kind, sorted.length, at(0.5), at(0.95), at(0.99), at(1)]];
  }),
});

function summary({ asked, found, cells }: Facts): string[] {
  const owned = found.filter((record) => record !== undefined).length;
  const free = thousands(asked.length - owned);
  const listed = cells
    .map(({ cell, records }) => `${thousands(records.length)} records of cell ${cell}`)
    .join(" and ");
  const open = cells.reduce(
    (sum, { outstandingHere, outstandingThere }) => sum + outstandingHere.length + outstandingThere.length,
    0,
  );
  return [
    `Looked up ${thousands(asked.length)} names: ${thousands(owned)} have an owner, ${free} have none.`,
    `Listed ${listed}, and compared each with the rows of its cell.`,
    `Leases still open: ${open}.`,
  ];
}
