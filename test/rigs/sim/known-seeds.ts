/**
 * Seeds that are known to meet something, so that a change can be checked in seconds: a set of seeds that
 * together meet everything in coverage.ts, and one seed for each planted bug. `npm run sim -- --find-known`
 * searches for them again.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { inSlice } from "../../support/slice.ts";
import { bugs } from "./bugs.ts";
import { missing } from "./coverage.ts";
import { runAll, runPlanted } from "./pool.ts";
import type { RunResult } from "./run.ts";
import { drawSettings, type SimulationSettings } from "./simulation-settings.ts";

export interface KnownSeeds {
  /** Events with faults in each run. */
  steps: number;
  /** Runs that together meet every fault, activity, invariant and rule. */
  coverage: number[];
  /** For each planted bug, a seed that finds it. */
  bugs: Record<string, number>;
  /** Planted bugs for which a search has found no seed yet. `--find-known` and `--bugs` look for them. */
  unfound: string[];
}

const COVERAGE_SEEDS = 1_000;

const file = new URL("./known-seeds.json", import.meta.url);

export const readKnownSeeds = (): KnownSeeds => JSON.parse(readFileSync(file, "utf8")) as KnownSeeds;

export const writeKnownSeeds = (known: KnownSeeds): void =>
  writeFileSync(file, `${JSON.stringify(known, null, 2)}\n`);

/** Whether the run found the bug as one of the invariants that the bug may violate. */
export const isExpected = (bug: string, { violation }: RunResult): boolean =>
  (bugs[bug]?.violates as readonly string[] | undefined)?.includes(violation?.rule ?? "") ?? false;

/** The known seeds of all planted bugs take minutes, so five slices share them. */
const SLICES = 5;

/** The planted bugs whose known seeds run in this slice. */
export const bugsOfSlice = ({ bugs: seeds }: KnownSeeds): readonly string[] =>
  inSlice(
    Object.keys(bugs).filter((bug) => seeds[bug] !== undefined),
    SLICES,
  );

/** Runs planted bugs with their known seeds. A bug without a seed is missing from the results. */
export async function runKnownBugs(
  { steps, bugs: seeds }: KnownSeeds,
  threads: number,
  planted: readonly string[] = Object.keys(bugs),
): Promise<{ bug: string; result: RunResult }[]> {
  const jobs = planted.flatMap((bug) => {
    const seed = seeds[bug];
    return seed === undefined ? [] : [{ bug, seed, steps }];
  });
  return runPlanted(jobs, threads);
}

/**
 * Searches for new seeds. Those that still meet what they met are kept. Throws if something is never met. A
 * bug that no run finds is listed as unfound.
 *
 * @param bugRuns runs in which a bug is searched before it counts as not found
 */
export async function findKnownSeeds(
  steps: number,
  threads: number,
  bugRuns: number,
  print: (line: string) => void,
): Promise<KnownSeeds> {
  const known = { ...readKnownSeeds(), steps };
  const coverage = await findCoverage(known, threads);
  print(`${coverage.length} seeds cover everything`);
  const kept = new Map<string, number>();
  for (const { bug, result } of await runKnownBugs(known, threads))
    if (isExpected(bug, result)) kept.set(bug, result.seed);
  const seeds: Record<string, number> = {};
  const unfound: string[] = [];
  for (const bug of Object.keys(bugs)) {
    const seed = kept.get(bug) ?? (await firstToFind(bug, steps, threads, bugRuns));
    if (!kept.has(bug)) print(seed === undefined ? `not found: ${bug}` : `seed ${seed} finds: ${bug}`);
    if (seed === undefined) unfound.push(bug);
    else seeds[bug] = seed;
  }
  return { steps, coverage, bugs: seeds, unfound };
}

/** What only some runs have, and the invariants that only these can violate. */
const needed: readonly (readonly [
  invariants: readonly string[],
  has: (run: SimulationSettings) => boolean,
])[] = [
  [["I31", "I32"], ({ routers }) => routers !== undefined],
  [["I45", "I46"], ({ scrubMs }) => scrubMs !== undefined],
  [["I47", "I48", "I49"], ({ growth }) => growth !== undefined],
  [["I53"], ({ plans }) => plans === true],
  [["I54"], ({ sourceGoesBack }) => sourceGoesBack !== undefined],
  [["I55"], ({ losesTransfers }) => losesTransfers === true],
  [["I41", "I42", "I43"], ({ queueMs }) => queueMs !== undefined],
  [["I40"], ({ renewalMs }) => renewalMs !== undefined],
  [["I19", "I20", "I22", "I23"], ({ activities }) => activities.verify > 0],
];

/** Whether a run could find a bug. */
export function mayFind(bug: string, seed: number): boolean {
  const violates: readonly string[] = bugs[bug]?.violates ?? [];
  const settings = drawSettings(seed);
  return needed.every(
    ([invariants, has]) => !violates.every((invariant) => invariants.includes(invariant)) || has(settings),
  );
}

async function firstToFind(
  bug: string,
  steps: number,
  threads: number,
  mostRuns: number,
): Promise<number | undefined> {
  let next = 1;
  let runs = 0;
  let found: number | undefined;
  await runAll({
    threads,
    bug,
    next: () => {
      while (!mayFind(bug, next)) next += 1;
      return runs++ < mostRuns ? { seed: next++, steps } : undefined;
    },
    onResult: (result) => {
      if (isExpected(bug, result) && !(found !== undefined && found < result.seed)) found = result.seed;
      return found === undefined;
    },
  });
  return found;
}

/**
 * Runs the known seeds, then others until everything was met. Greedy choice: each step takes the seed that
 * meets the most of what is missing, and prefers the shorter run.
 */
async function findCoverage({ steps, coverage: known }: KnownSeeds, threads: number): Promise<number[]> {
  const first = [...known];
  let next = 1;
  const runs: RunResult[] = [];
  const met: Record<string, number> = {};
  await runAll({
    threads,
    next: () => {
      const seed = first.shift();
      if (seed !== undefined) return { seed, steps };
      while (known.includes(next)) next += 1;
      return next > COVERAGE_SEEDS ? undefined : { seed: next++, steps };
    },
    onResult: (result) => {
      runs.push(result);
      Object.assign(met, result.seen);
      return missing(met).length > 0;
    },
  });
  const violated = runs.find(({ violation }) => violation !== undefined);
  if (violated !== undefined) throw new Error(`seed ${violated.seed} violates ${violated.violation?.rule}`);
  runs.sort((one, other) => one.steps - other.steps || one.seed - other.seed);
  const chosen: number[] = [];
  const seen: Record<string, number> = {};
  for (let lacking = missing(seen); lacking.length > 0; lacking = missing(seen)) {
    const gains = runs.map((run) => ({ run, left: missing({ ...seen, ...run.seen }).length }));
    const best = gains.reduce((one, other) => (other.left < one.left ? other : one));
    if (best.left === lacking.length)
      throw new Error(`never occurred in ${COVERAGE_SEEDS} runs: ${lacking.join(", ")}`);
    chosen.push(best.run.seed);
    Object.assign(seen, best.run.seen);
  }
  return chosen.toSorted((one, other) => one - other);
}
