/**
 * Detects a runtime that has ended for good. Miniflare restarts a runtime that died, but the restart can fail
 * or never finish.
 */
import { setTimeout } from "node:timers/promises";

const PAUSE_MS = 1_000;
const ANSWER_MS = 2_000;
/** Attempts while Miniflare restarts a runtime. It does not report whether the restart ever finishes. */
export const RESTART_TRIES = 20;
/** Attempts after Miniflare has reported a failure. */
export const FAILED_TRIES = 3;

export class RuntimeWatch {
  /** Resolves when the runtime no longer answers. */
  readonly failed: Promise<Error>;
  readonly #fail: (error: Error) => void;
  readonly #pauseMs: number;
  #url: string | undefined;

  constructor(pauseMs = PAUSE_MS) {
    const { promise, resolve } = Promise.withResolvers<Error>();
    this.failed = promise;
    this.#fail = resolve;
    this.#pauseMs = pauseMs;
  }

  start(url: string): void {
    this.#url = url;
  }

  stop(): void {
    this.#url = undefined;
  }

  /** Checks up to `tries` times whether the runtime answers, and resolves `failed` if it never does. */
  async check(tries: number): Promise<void> {
    for (let left = tries; left > 0; left -= 1) {
      if (this.#url === undefined || (await answers(this.#url))) return;
      await setTimeout(this.#pauseMs, undefined, { ref: false });
    }
    if (this.#url !== undefined && !(await answers(this.#url)))
      this.#fail(new Error("the runtime ended and could not be started again"));
  }
}

async function answers(url: string): Promise<boolean> {
  const answer = await fetch(`${url}/healthz`, { signal: AbortSignal.timeout(ANSWER_MS) }).catch(
    () => undefined,
  );
  await answer?.body?.cancel();
  return answer?.ok === true;
}

/**
 * How far the clock may go back without a restart. The runtime's timers wait until its clock has caught up,
 * so a smaller step delays them by no more than a restart would.
 */
const TOLERATED_MS = 1_000;
const INTERVAL_MS = 250;

/**
 * Calls `restart` when the clock was set back, and again only after that call has ended. In workerd, timers
 * follow the wall clock: if it goes back by an hour, the pauses of begins that compete for a name last an
 * hour longer. A new process has no earlier time to catch up with. Returns a function that ends the watch.
 */
export function watchClock(restart: (backMs: number) => Promise<void>, now = Date.now): () => void {
  let latestMs = now();
  let isRestarting = false;
  const check = (): void => {
    const nowMs = now();
    const backMs = latestMs - nowMs;
    if (backMs > TOLERATED_MS && !isRestarting) {
      isRestarting = true;
      latestMs = nowMs;
      void restart(backMs).finally(() => (isRestarting = false));
    }
    latestMs = Math.max(latestMs, nowMs);
  };
  const timer = setInterval(check, INTERVAL_MS);
  return () => clearInterval(timer);
}
