import type { Facts } from "./check.ts";
import { LANES } from "./claiming.ts";
import type { Story } from "./scenario.ts";
import { renderTable, thousands, type Table } from "./table.ts";
import { conflictKinds, type Tally } from "./tally.ts";
import { percentile, requestKinds } from "./timed-fetch.ts";
import { cellIds, type World } from "./world.ts";

const MOST_DIFFERENCES = 50;
const FIRST_WIDTH = 46;

/** What happened, as tables. */
export function report(world: World, story: Story, facts: Facts, seconds: number): string[] {
  const { timings, lostAnswers, lostYes } = world;
  const show = (table: Body): string[] => ["", ...renderTable({ ...table, firstWidth: FIRST_WIDTH })];
  return [
    `${thousands(world.plan.names.length)} real names, two cells, ${thousands(timings.count)} requests over HTTP in ${seconds.toFixed(1)} s (seed ${world.seed})`,
    ...show(names(world, story)),
    ...show(calls(world)),
    `${thousands(lostAnswers)} answers were lost after the coordinator had done its work, ${thousands(lostYes)} of them a yes. The cells made`,
    "each call again, with the same UUID.",
    ...show(conflicts(world, story)),
    ...show(recovery(story)),
    "Two visits at once may both count a lease: to settle it twice is the same as once.",
    ...show(latencies(world)),
    "",
    ...summary(facts),
  ];
}

/** The verdict: what the exit code says, in words. */
export function verdict(differences: readonly string[]): string[] {
  if (differences.length === 0)
    return ["CHECK PASSED: every name has at most one owner, and both cells agree with the coordinator."];
  const shown = differences.slice(0, MOST_DIFFERENCES).map((difference) => `  ${difference}`);
  const more =
    differences.length > shown.length ? [`  … and ${thousands(differences.length - shown.length)} more`] : [];
  return [
    `CHECK FAILED: ${thousands(differences.length)} ${differences.length === 1 ? "difference" : "differences"}`,
    ...shown,
    ...more,
  ];
}

type Body = Omit<Table, "firstWidth">;

const head = ["cell 1", "cell 2", "both"];

const sums = (world: World, rows: [string, (tally: Tally) => number][]): Body["rows"] =>
  rows.map(([what, of]) => {
    const [one, two] = [of(world.tallies["1"]), of(world.tallies["2"])];
    return [what, one, two, one + two];
  });

function names(world: World, { won, cells }: Story): Body {
  const { orders, contested } = world.plan;
  const alone = cellIds.map((id) => orders[id].length - contested.size);
  const row = (what: string, one: number, two: number): Body["rows"][number] => [what, one, two, one + two];
  return {
    title: "NAMES: WHO WON WHAT",
    head,
    rows: [
      row("wanted by this cell alone", alone[0] ?? 0, alone[1] ?? 0),
      row("  got", won["1"].alone, won["2"].alone),
      ["wanted by both cells", contested.size, contested.size, contested.size],
      row("  got", won["1"].contested, won["2"].contested),
      ...sums(world, [
        ["  lost to the other cell", (tally) => tally.lost],
        ["destroyed later", (tally) => tally.givenUp],
        ["renamed", (tally) => tally.renamed],
        ["changed in case only (a replace)", (tally) => tally.recased],
        ["got in the end: the other had destroyed it", (tally) => tally.secondChance],
      ]),
      row("owned at the end", cells["1"].database.entries().length, cells["2"].database.entries().length),
    ],
  };
}

const calls = (world: World): Body => ({
  title: "LEASES: WHAT WAS ASKED",
  head,
  rows: sums(world, [
    ["granted", (tally) => tally.leasesGranted],
    ["  creates in them", (tally) => tally.creates],
    ["  destroys in them", (tally) => tally.destroys],
    ["  replaces in them", (tally) => tally.replaces],
    ["committed by the process that began them", (tally) => tally.committed],
    ["rolled back: the cell's own database refused", (tally) => tally.localFailures],
    ["refused, nothing of the batch taken", (tally) => tally.refused],
    ["no answer in time, closed by a rollback", (tally) => tally.unknown],
  ]),
});

const conflictWords: Record<(typeof conflictKinds)[number], string> = {
  taken: "taken: a claim has the name",
  leased: "leased: another lease is under way on it",
  not_owner: "not_owner: the name is another cell's",
  absent: "absent: nobody has it",
  mismatch: "mismatch: own, but of another source",
};

const conflicts = (world: World, { oversteps }: Story): Body => ({
  title: `CONFLICTS BY KIND (${oversteps} batches were provoked)`,
  head,
  rows: sums(
    world,
    conflictKinds.map((kind) => [conflictWords[kind], (tally) => tally.conflicts.get(kind) ?? 0]),
  ),
});

const recovery = ({ deaths, recovery: runs }: Story): Body => ({
  title: `RECOVERY (left open: ${deaths.begun} begun, ${deaths.saved} saved, ${deaths.committed} done)`,
  head: ["seen", "commits", "rollbacks", "waiting", "orphans"],
  rows: runs.map(({ what, counters }) => [
    what,
    counters.processed,
    counters.committed,
    counters.rolledBack,
    counters.pending,
    counters.orphaned,
  ]),
});

const latencies = ({ timings }: World): Body => ({
  title: `LATENCY OF ONE REQUEST, ms (${LANES} per cell at a time)`,
  head: ["count", "p50", "p95", "p99", "max"],
  rows: requestKinds.flatMap((kind) => {
    const sorted = timings.of(kind);
    const at = (share: number): string => percentile(sorted, share).toFixed(1);
    return sorted.length === 0 ? [] : [[kind, sorted.length, at(0.5), at(0.95), at(0.99), at(1)]];
  }),
});

function summary({ asked, found, cells }: Facts): string[] {
  const owned = found.filter((record) => record !== undefined).length;
  const listed = cells
    .map(({ cell, records }) => `${thousands(records.length)} records of cell ${cell}`)
    .join(" and ");
  const open = cells.reduce(
    (sum, { outstandingHere, outstandingThere }) => sum + outstandingHere.length + outstandingThere.length,
    0,
  );
  return [
    `Looked up ${thousands(asked.length)} names: ${thousands(owned)} have an owner, ${thousands(asked.length - owned)} have none.`,
    `Listed ${listed}; compared each with its cell's own rows.`,
    `Leases still open: ${open}.`,
  ];
}
