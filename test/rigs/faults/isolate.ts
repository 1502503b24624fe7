import { DEFAULT_BOUNDS } from "../../../src/projections/database.ts";
import { CALL_TIMEOUT_MS } from "../../../src/projections/cron-run.ts";

/** How long the cron waits for an object and for D1: constants, and the tests have no such time. */
const PATIENCE_MS = new Set<number | undefined>([CALL_TIMEOUT_MS, DEFAULT_BOUNDS.timeoutMs]);
/** Longer than any answer takes that comes at all. */
const SHORT_MS = 500;

let isDone = false;

/** Once, for the isolate that tests and objects share. */
export function prepareIsolate(): void {
  if (isDone) return;
  isDone = true;
  shortenTimers();
  silenceEvents();
}

/** A thousand rows write a line per request; each goes to another process. */
function silenceEvents(): void {
  const real = console.log.bind(console);
  console.log = (...given: unknown[]) => {
    if (typeof given[0] !== "string" || !given[0].startsWith('{"event":')) real(...given);
  };
}

/** Other timers of exactly that length are shortened as well: the limits that `play.ts` sets have others. */
function shortenTimers(): void {
  const real = globalThis.setTimeout;
  const shortened = (work: (...given: unknown[]) => void, ms?: number, ...given: unknown[]): unknown =>
    real(work, PATIENCE_MS.has(ms) ? SHORT_MS : ms, ...given);
  globalThis.setTimeout = shortened as typeof globalThis.setTimeout;
}
