import type { Clock } from "../../src/core/ports.ts";

/** Time that passes only when nothing else can happen: a test of an hour takes no time, and takes it the same way each time. */
export class VirtualClock implements Clock {
  #now = 1_750_000_000_000;
  #timers: { atMs: number; ring: () => void }[] = [];

  now(): number {
    return this.#now;
  }

  after(delayMs: number, ring: () => void): () => void {
    const timer = { atMs: this.#now + delayMs, ring };
    this.#timers.push(timer);
    return () => {
      this.#timers = this.#timers.filter((other) => other !== timer);
    };
  }

  turn(): Promise<void> {
    return new Promise((resume) => setImmediate(resume));
  }

  /** Lets time pass, timer by timer, up to `ms` from now. */
  async pass(ms: number): Promise<void> {
    const until = this.#now + ms;
    await this.#quiet();
    while (this.#ring(until)) await this.#quiet();
    this.#now = until;
  }

  /** What an operator or NTP does to a clock. */
  jump(ms: number): void {
    this.#now += ms;
  }

  /** Lets time pass for as long as `work` needs. */
  async runUntil<T>(work: Promise<T>): Promise<T> {
    let done = false;
    const watched = work.finally(() => {
      done = true;
    });
    watched.catch(() => {});
    for (;;) {
      await this.#quiet();
      if (done) return watched;
      if (!this.#ring(Infinity)) throw new Error("the work waits for something that never happens");
    }
  }

  #ring(untilMs: number): boolean {
    const next = this.#timers.toSorted((a, b) => a.atMs - b.atMs)[0];
    if (next === undefined || next.atMs > untilMs) return false;
    this.#timers = this.#timers.filter((timer) => timer !== next);
    this.#now = Math.max(this.#now, next.atMs);
    next.ring();
    return true;
  }

  /** Enough turns for every chain of promises that the code under test has. */
  async #quiet(): Promise<void> {
    for (let turn = 0; turn < 30; turn += 1) await this.turn();
  }
}
