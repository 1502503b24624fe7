/** The cron waits 10 s for an object or for D1. It is a constant there, and the tests have no such time. */
const CONSTANT_MS = 10_000;
const SHORT_MS = 500;

let isDone = false;

/** Once, for the isolate that tests and objects share. */
export function prepareIsolate(): void {
  if (isDone) return;
  isDone = true;
  shortenTimers();
  hushEvents();
}

/** A thousand rows write a line per request; each goes to another process. */
function hushEvents(): void {
  const real = console.log.bind(console);
  console.log = (...given: unknown[]) => {
    if (typeof given[0] !== "string" || !given[0].startsWith('{"event":')) real(...given);
  };
}

/** Nothing else in the isolate uses a timer of exactly that length. */
function shortenTimers(): void {
  const real = globalThis.setTimeout;
  const shortened = (work: (...given: unknown[]) => void, ms?: number, ...given: unknown[]): unknown =>
    real(work, ms === CONSTANT_MS ? SHORT_MS : ms, ...given);
  globalThis.setTimeout = shortened as typeof globalThis.setTimeout;
}
