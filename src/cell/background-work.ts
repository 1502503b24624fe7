/** As many as begins that may be under way, so that all of them may fail at once. */
const MAX_UNDER_WAY = 300;

/** Work that no caller waits for, and that something else repeats if the process dies. */
export class BackgroundWork {
  readonly #underWay = new Set<Promise<void>>();

  /** Starts work that never rejects. Answers false if too much is under way. */
  start(work: () => Promise<void>): boolean {
    if (this.#underWay.size >= MAX_UNDER_WAY) return false;
    const running = work().finally(() => this.#underWay.delete(running));
    this.#underWay.add(running);
    return true;
  }

  /** Resolves when all work that has been started has ended. */
  async ended(): Promise<void> {
    await Promise.all(this.#underWay);
  }
}
