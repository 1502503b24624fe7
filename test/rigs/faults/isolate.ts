import { SCRUB_STEP_TIMEOUT_MS } from "../../../src/coordinator/capabilities/scrub/edge/handlers.ts";
import { DEFAULT_BOUNDS } from "../../../src/coordinator/d1/database.ts";
import { CALL_TIMEOUT_MS } from "../../../src/coordinator/cron/cron-run.ts";

/** The timeouts of the Worker for objects and D1 that no variable sets. They are too long for tests. */
const PATIENCE_MS = new Set<number | undefined>([
  CALL_TIMEOUT_MS,
  DEFAULT_BOUNDS.timeoutMs,
  SCRUB_STEP_TIMEOUT_MS,
]);
/** Longer than any answer takes that is not lost. */
const SHORT_MS = 500;

let isDone = false;

/** Prepares the isolate that tests and objects share. Only the first call has an effect. */
export function prepareIsolate(): void {
  if (isDone) return;
  isDone = true;
  shortenTimers();
  silenceEvents();
}

/**
 * Drops log lines of events. A thousand rows write one for each request, and each line goes to another
 * process.
 */
function silenceEvents(): void {
  const real = console.log.bind(console);
  console.log = (...given: unknown[]) => {
    if (typeof given[0] !== "string" || !given[0].startsWith('{"event":')) real(...given);
  };
}

/** Shortens timers of exactly these lengths. The limits in `play.ts` have other values. */
function shortenTimers(): void {
  const real = globalThis.setTimeout;
  const shortened = (work: (...given: unknown[]) => void, ms?: number, ...given: unknown[]): unknown =>
    real(work, PATIENCE_MS.has(ms) ? SHORT_MS : ms, ...given);
  globalThis.setTimeout = shortened as typeof globalThis.setTimeout;
}
