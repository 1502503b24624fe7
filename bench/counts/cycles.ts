import { RIDING } from "./riding.ts";
import { OVER_OLD } from "./upkeep.ts";
import { weighted, type WorkCounts } from "./work-counts.ts";

/** The work that follows each decision. It is counted for one lease, and is the same for all. */
const FOLLOWING = "clean-up, per lease";
export const RIDING_CYCLE = "riding decisions, cycle";
const ON_SHARDS = new Set(["begin", "commit", "rollback", "cycle"]);

/** Adds what the counts imply: whole cycles, and the means over random names. */
export function withCycles(counted: readonly WorkCounts[]): WorkCounts[] {
  const begins = counted.filter(({ work }) => work === "begin");
  const all = [...counted, ...begins.map((begin) => cycleOf(begin, counted))];
  const spread = all.filter(({ work, shardsTouched }) => ON_SHARDS.has(work) && shardsTouched > 1);
  const riding = counted
    .filter(({ work }) => work === RIDING)
    .map((each) => ({ ...withFollowing([each], counted), work: RIDING_CYCLE }));
  return [...all, ...spread.map((most) => meanOf(most, all)), ...riding];
}

/** A begin, its commit, and all that follows until the lease is forgotten. */
function cycleOf(begin: WorkCounts, counted: readonly WorkCounts[]): WorkCounts {
  const commit = find(counted, { ...begin, work: "commit" });
  const cycle =
    begin.system === "leasehold"
      ? withFollowing([begin, commit], counted)
      : weighted([1, begin], [1, commit]);
  return { ...cycle, work: "cycle", rounds: (begin.rounds ?? 0) + (commit.rounds ?? 0) };
}

function withFollowing(
  [first, ...others]: [WorkCounts, ...WorkCounts[]],
  counted: readonly WorkCounts[],
): WorkCounts {
  const ofOne = (work: string): WorkCounts =>
    find(counted, { system: "leasehold", work, claims: 1, shardsTouched: 1 });
  return weighted(
    [1, first],
    ...[...others, ofOne(FOLLOWING)].map((part) => [1, part] as const),
    // Each begin makes a ledger forget an old lease, once it is as old as the retention.
    [1, ofOne(OVER_OLD)],
    [-1, { ...ofOne("begin"), syncs: null }],
  );
}

/**
 * The mean over random names. Each further shard costs a call the same (docs/reference/limits.md), so the
 * mean follows from one shard and all.
 */
function meanOf(most: WorkCounts, all: readonly WorkCounts[]): WorkCounts {
  const least = find(all, { ...most, shardsTouched: 1 });
  const shardsTouched = meanShardsTouched(most.claims, most.shards);
  const weight = (shardsTouched - 1) / (most.shardsTouched - 1);
  return { ...weighted([weight, most], [1 - weight, least]), shardsTouched };
}

/** The exact mean number of shards that random names touch, because the hash spreads them evenly. */
const meanShardsTouched = (names: number, shards: number): number => shards * (1 - (1 - 1 / shards) ** names);

type Key = Pick<WorkCounts, "system" | "work" | "claims" | "shardsTouched">;

function find(counted: readonly WorkCounts[], { system, work, claims, shardsTouched }: Key): WorkCounts {
  const found = counted.find(
    (each) =>
      each.system === system &&
      each.work === work &&
      each.claims === claims &&
      each.shardsTouched === shardsTouched,
  );
  if (found === undefined) throw new Error(`${work} of ${claims} claims was not counted for ${system}`);
  return found;
}
