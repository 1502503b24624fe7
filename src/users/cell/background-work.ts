import { pause } from "../client/attempt-abort.ts";

/** As many as begins that may be under way, so that all of them may fail at once. */
const MAX_UNDER_WAY = 300;

/** Longer than such work takes. In a Worker, the work of a request that has ended never ends. */
const LOST_AFTER_MS = 60_000;

/** How long work that was given up may still take. */
const GIVING_UP_MS = 1_000;

/** Work that no caller waits for, and that something else repeats if it is given up. */
export class BackgroundWork {
  /** When each work was started. */
  readonly #underWay = new Map<Promise<void>, number>();
  #givesUp = new AbortController();

  /** Starts work that never rejects, and that ends soon after `signal`. False: too much is under way. */
  start(work: (signal: AbortSignal) => Promise<void>): boolean {
    const startedMs = performance.now();
    for (const [each, itsMs] of this.#underWay)
      if (startedMs - itsMs > LOST_AFTER_MS) this.#underWay.delete(each);
    if (this.#underWay.size >= MAX_UNDER_WAY) return false;
    const running = work(this.#givesUp.signal).finally(() => this.#underWay.delete(running));
    this.#underWay.set(running, startedMs);
    return true;
  }

  /** Waits for all work that was started before. What takes longer than `withinMs` is given up. */
  async finish(withinMs: number): Promise<void> {
    const current = this.#givesUp;
    this.#givesUp = new AbortController();
    const ended = new AbortController();
    void Promise.all(this.#underWay.keys()).then(() => ended.abort());
    await pause(withinMs, [ended.signal]);
    if (ended.signal.aborted) return;
    current.abort(new Error("the cell was flushed"));
    await pause(GIVING_UP_MS, [ended.signal]);
  }
}
