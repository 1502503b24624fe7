/**
 * Miniflare starts a runtime that died once again. Where that fails, or never comes to an end, nobody is left
 * to answer.
 */
import { setTimeout } from "node:timers/promises";

const PAUSE_MS = 1_000;
const ANSWER_MS = 2_000;
/** For a runtime that is being started again; nothing else says whether it ever gets ready. */
export const RESTART_TRIES = 20;
/** Once Miniflare has said that something failed. */
export const FAILED_TRIES = 3;

export class RuntimeWatch {
  /** Resolves when nothing answers any more. */
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

  /** Something is wrong with the runtime: does it answer, now or after a while? */
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
