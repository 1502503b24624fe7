/** As many as begins that may be under way, so that all of them may fail at once. */
const MAX_UNDER_WAY = 300;

/** Work that no caller waits for, and that something else repeats if it is given up. */
export class BackgroundWork {
  readonly #underWay = new Set<Promise<void>>();
  #givesUp = new AbortController();

  /** Starts work that never rejects, and that ends soon after `signal`. False: too much is under way. */
  start(work: (signal: AbortSignal) => Promise<void>): boolean {
    if (this.#underWay.size >= MAX_UNDER_WAY) return false;
    const running = work(this.#givesUp.signal).finally(() => this.#underWay.delete(running));
    this.#underWay.add(running);
    return true;
  }

  /** Resolves when all work that was started before has ended. What takes longer than that is given up. */
  async finish(withinMs: number): Promise<void> {
    const current = this.#givesUp;
    this.#givesUp = new AbortController();
    const timer = setTimeout(() => current.abort(new Error("the cell was flushed")), withinMs);
    await Promise.all(this.#underWay);
    clearTimeout(timer);
  }
}
