import { run, type RunResult } from "./run.ts";
import { drawSettings, type SimulationSettings } from "./simulation-settings.ts";

export interface Shrunk {
  /** The planted bug with which it was found. */
  bug?: string | undefined;
  seed: number;
  steps: number;
  rule: string;
  /** Indices of the actions that the violation needs. */
  kept: number[];
  /**
   * What the violation does not need: faults, such as "messages.lose" or "disks.crash_after", and what cells
   * do all the time.
   */
  without: string[];
}

const groups = ["messages", "disks", "records", "locals", "cellCrashes"] as const;

/** What cells do all the time in some runs. */
const habits = [
  "bringsForward",
  "changesMs",
  "growth",
  "losesTransfers",
  "queueMs",
  "renewalMs",
  "scrubMs",
  "sourceGoesBack",
  "statusMs",
  "transfersMs",
  "versions",
] as const;

const isHabit = (name: string): name is (typeof habits)[number] => habits.some((habit) => habit === name);

/** The settings of a seed with some faults and habits switched off. */
function settingsWithout(seed: number, without: readonly string[]): SimulationSettings {
  const settings = structuredClone(drawSettings(seed));
  for (const name of without) {
    if (isHabit(name)) {
      delete settings[name];
      continue;
    }
    const [group, kind] = name.split(".") as [(typeof groups)[number], string];
    (settings[group] as Record<string, number>)[kind] = 0;
  }
  return settings;
}

export function runShrunk(
  { bug, seed, steps, kept, without }: Shrunk,
  mostSteps?: number,
): Promise<RunResult> {
  const keep = new Set(kept);
  return run({
    bug,
    seed,
    steps,
    mostSteps,
    skipped: { has: (index) => !keep.has(index) },
    settings: settingsWithout(seed, without),
  });
}

/**
 * Removes what the violation does not need: kinds of faults, then actions, in ever smaller groups. `mostRuns`
 * bounds the work. A run that takes much longer than the one that was found is no shrunk run.
 */
export async function shrink(
  found: RunResult,
  { bug, steps }: Pick<Shrunk, "bug" | "steps">,
  mostRuns = 300,
): Promise<{ shrunk: Shrunk; result: RunResult }> {
  const { seed, violation } = found;
  if (violation === undefined) throw new Error("there is nothing to shrink");
  let best: Shrunk = {
    bug,
    seed,
    steps,
    rule: violation.rule,
    kept: Array.from({ length: found.actions }, (_, index) => index),
    without: [],
  };
  let result = found;
  let runsLeft = mostRuns;
  const attempt = async (candidate: Shrunk): Promise<boolean> => {
    if (runsLeft === 0) return false;
    runsLeft -= 1;
    const tried = await runShrunk(candidate, 2 * found.steps);
    if (tried.violation?.rule !== violation.rule) return false;
    best = candidate;
    result = tried;
    return true;
  };
  for (const habit of habits)
    if (drawSettings(seed)[habit] !== undefined)
      await attempt({ ...best, without: [...best.without, habit] });
  for (const group of groups)
    for (const kind of Object.keys(drawSettings(seed)[group]))
      await attempt({ ...best, without: [...best.without, `${group}.${kind}`] });
  for (let size = Math.ceil(best.kept.length / 2); size >= 1; size = Math.floor(size / 2)) {
    for (let from = 0; from < best.kept.length;) {
      const kept = [...best.kept.slice(0, from), ...best.kept.slice(from + size)];
      if (!(await attempt({ ...best, kept }))) from += size;
    }
  }
  return { shrunk: best, result };
}
