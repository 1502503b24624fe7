import { setImmediate } from "node:timers/promises";

const STEP_ROWS = 20_000;

/**
 * Calls `step` with the rows of one transaction at a time. Between two steps the process can handle signals.
 */
export async function inSteps(count: number, step: (from: number, to: number) => void): Promise<void> {
  for (let from = 0; from < count; from += STEP_ROWS) {
    step(from, Math.min(count, from + STEP_ROWS));
    await setImmediate();
  }
}
