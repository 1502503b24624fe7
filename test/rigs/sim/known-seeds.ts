/**
 * Seeds that are known to meet something, so that a change can be checked in seconds: a set of seeds that
 * together meet everything in coverage.ts, and one seed for each planted bug. `npm run sim -- --find-known`
 * searches for them again.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { bugs, rareBugs } from "./bugs.ts";
import { missing } from "./coverage.ts";
import { endingOf, type Ending } from "./ending.ts";
import type { Job, Pool } from "./pool.ts";
import type { RunResult } from "./run.ts";
import { drawSettings, type SimulationSettings } from "./simulation-settings.ts";

/** A run: a seed, and the number of its events with faults. */
interface KnownRun {
  seed: number;
  steps: number;
}

export interface KnownSeeds {
  /** Events with faults in each run of the coverage set. */
  steps: number;
  /** Runs that together meet every fault, activity, invariant and rule. */
  coverage: number[];
  /** For each planted bug, a short run that finds it. */
  bugs: Record<string, KnownRun>;
}

const COVERAGE_SEEDS = 1_000;

/** A bug that is found after more events is searched for in shorter runs. */
const SHORT_EVENTS = 1_000;
/** Events of all runs that look for a shorter one, which take some seconds. */
const SHORTENING_EVENTS = 30_000;
/** Fewer events with faults than this reach almost nothing. */
const LEAST_STEPS = 15;

const file = new URL("./known-seeds.json", import.meta.url);

export const readKnownSeeds = (): KnownSeeds => JSON.parse(readFileSync(file, "utf8")) as KnownSeeds;

export function writeKnownSeeds(known: KnownSeeds): void {
  const text = JSON.stringify(known, null, 2);
  // One line for each bug.
  const lines = text.replaceAll(/\{\s+"seed": (\d+),\s+"steps": (\d+)\s+\}/g, '{ "seed": $1, "steps": $2 }');
  writeFileSync(file, `${lines}\n`);
}

/** Whether the run found the bug as one of the invariants that the bug may violate. */
export const isExpected = (bug: string, { violation }: RunResult): boolean =>
  (bugs[bug]?.violates as readonly string[] | undefined)?.includes(violation?.rule ?? "") ?? false;

/** Runs planted bugs with their known seeds. */
export async function runKnownBugs({ bugs: runs }: KnownSeeds, pool: Pool): Promise<Map<string, RunResult>> {
  const jobs = Object.entries(runs).map(([bug, known]): Job => ({ bug, ...known }));
  const results = new Map<string, RunResult>();
  await pool.runAll({
    next: () => jobs.shift(),
    onResult: (result, { bug = "" }) => results.set(bug, result) !== undefined,
  });
  return results;
}

/**
 * Searches for new seeds. Those that still meet what they met are kept. Throws if something is never met.
 *
 * @param bugRuns runs in which a bug is searched before it counts as not found
 */
export async function findKnownSeeds(
  steps: number,
  pool: Pool,
  bugRuns: number,
  print: (line: string) => void,
): Promise<KnownSeeds> {
  const known = { ...readKnownSeeds(), steps };
  const coverage = await findCoverage(known, pool);
  print(`${coverage.length} seeds cover everything`);
  const results = await runKnownBugs(known, pool);
  const runs: Record<string, KnownRun> = {};
  for (const bug of Object.keys(bugs).filter((each) => !rareBugs.has(each))) {
    const [run, result] = [known.bugs[bug], results.get(bug)];
    if (run !== undefined && result !== undefined && isExpected(bug, result)) {
      runs[bug] = run;
      continue;
    }
    const found = await firstToFind(bug, steps, pool, bugRuns);
    if (found === undefined) {
      print(`not found in ${bugRuns} runs: ${bug}`);
      continue;
    }
    const { events, ...shortest } = await shorter(bug, found, pool);
    print(`seed ${shortest.seed} with ${shortest.steps} steps finds after ${events} events: ${bug}`);
    runs[bug] = shortest;
  }
  return { steps, coverage, bugs: runs };
}

type Has = (run: SimulationSettings, ending: Ending) => boolean;

/** What only some runs have, and the invariants that only these can violate. */
const neededBy: readonly (readonly [invariants: readonly string[], has: Has])[] = [
  [["I31", "I32"], ({ routers }) => routers !== undefined],
  [["I45", "I46"], ({ scrubMs }) => scrubMs !== undefined],
  [["I47", "I48", "I49"], ({ growth }) => growth !== undefined],
  [["I24"], (_, ending) => !["scrubs", "removal"].includes(ending)],
  [["I26", "I39"], (_, ending) => ending === "directory"],
  [["I36", "I37"], (_, ending) => ending === "removal" || ending === "removal that goes back"],
  [["I38"], (_, ending) => ending === "removal that goes back"],
  [["I54"], (_, ending) => ending === "sources"],
  [["I55"], ({ losesTransfers }) => losesTransfers === true],
  [["I41", "I42", "I43"], ({ queueMs }) => queueMs !== undefined],
  [["I58"], ({ versions }) => versions !== undefined],
  [["I40"], ({ renewalMs }) => renewalMs !== undefined],
  [["I19", "I20", "I22", "I23"], ({ activities }) => activities.verify > 0],
];

/** What only some runs have, and the rules that mean nothing in others, by their first letter. */
const neededFor: Readonly<Record<string, Has>> = {
  G: ({ growth, sourceGoesBack }) => growth !== undefined || sourceGoesBack !== undefined,
  Q: ({ routers }) => routers !== undefined,
  Y: ({ transfersMs, losesTransfers }) => transfersMs !== undefined || losesTransfers === true,
};

/** Whether a run could find a bug. */
export function mayFind(bug: string, seed: number): boolean {
  const known = bugs[bug];
  if (known === undefined) throw new Error(`unknown bug "${bug}"`);
  const settings = drawSettings(seed);
  const ending = endingOf(seed, settings);
  const hasRule = neededFor[known.breaks.charAt(0)]?.(settings, ending) ?? true;
  return (
    hasRule &&
    neededBy.every(
      ([invariants, has]) =>
        !known.violates.every((each) => invariants.includes(each)) || has(settings, ending),
    )
  );
}

/** A run that found a bug after so many events. */
interface Finding extends KnownRun {
  events: number;
}

/** Whether it is better than what was found before. Threads may end their runs in any order. */
const isBetter = (one: Finding, other: Finding | undefined): boolean =>
  other === undefined || one.events < other.events || (one.events === other.events && one.seed < other.seed);

async function firstToFind(
  bug: string,
  steps: number,
  pool: Pool,
  mostRuns: number,
): Promise<Finding | undefined> {
  const seeds = seedsFor(bug);
  let runs = 0;
  let found: Finding | undefined;
  await pool.runAll({
    next: () => (runs++ < mostRuns ? { bug, seed: seeds.next().value, steps } : undefined),
    onResult: (result, { seed }) => {
      const finding = { seed, steps, events: result.steps };
      if (isExpected(bug, result) && isBetter(finding, found)) found = finding;
      return found === undefined;
    },
  });
  return found;
}

/** Looks for a shorter run that finds the bug: first with the same seed, then with others. */
async function shorter(bug: string, found: Finding, pool: Pool): Promise<Finding> {
  let best = found;
  let eventsLeft = SHORTENING_EVENTS;
  const attempt = (next: () => KnownRun | undefined): Promise<void> =>
    pool.runAll({
      next: () => {
        const run = eventsLeft > 0 && best.events > SHORT_EVENTS ? next() : undefined;
        return run && { bug, ...run, mostSteps: best.events };
      },
      onResult: (result, { seed, steps }) => {
        eventsLeft -= result.steps;
        const finding = { seed, steps, events: result.steps };
        if (isExpected(bug, result) && isBetter(finding, best)) best = finding;
        return true;
      },
    });
  let { steps } = found;
  await attempt(() =>
    (steps = Math.floor(steps / 2)) < LEAST_STEPS ? undefined : { seed: found.seed, steps },
  );
  const seeds = seedsFor(bug);
  await attempt(() => ({ seed: seeds.next().value, steps: best.steps }));
  return best;
}

function* seedsFor(bug: string): Generator<number, never> {
  for (let seed = 1; ; seed += 1) if (mayFind(bug, seed)) yield seed;
}

/**
 * Runs the known seeds, then others until everything was met. Greedy choice: each step takes the seed that
 * meets the most of what is missing for its events.
 */
async function findCoverage({ steps, coverage: known }: KnownSeeds, pool: Pool): Promise<number[]> {
  const first = [...known];
  let next = 1;
  const runs: RunResult[] = [];
  const met: Record<string, number> = {};
  await pool.runAll({
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
  runs.sort((one, other) => one.seed - other.seed);
  const chosen: number[] = [];
  const seen: Record<string, number> = {};
  for (let lacking = missing(seen); lacking.length > 0; lacking = missing(seen)) {
    const gains = runs.map((run) => {
      const gained = lacking.length - missing({ ...seen, ...run.seen }).length;
      return { run, gained: gained / run.steps };
    });
    const best = gains.reduce((one, other) => (other.gained > one.gained ? other : one));
    if (best.gained === 0) throw new Error(`never occurred in ${COVERAGE_SEEDS} runs: ${lacking.join(", ")}`);
    chosen.push(best.run.seed);
    Object.assign(seen, best.run.seen);
  }
  return chosen.toSorted((one, other) => one - other);
}
