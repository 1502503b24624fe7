import type { Clock } from "../../src/coordinator/kernel/ports.ts";

/**
 * A clock whose time passes only when nothing else can happen. A test over an hour of virtual time takes no
 * real time, and always runs in the same order.
 */
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

  /** Lets `ms` milliseconds pass, timer by timer. */
  async pass(ms: number): Promise<void> {
    const until = this.#now + ms;
    await this.#quiet();
    while (this.#ring(until)) await this.#quiet();
    this.#now = until;
  }

  /** Sets the clock forward or back, as an operator or NTP would. */
  jump(ms: number): void {
    this.#now += ms;
  }

  /** Lets time pass until `work` has ended. */
  async runUntil<T>(work: Promise<T>): Promise<T> {
    let done = false;
    const watched = work.finally(() => {
      done = true;
    });
    watched.catch(() => {});
    for (;;) {
      await this.#quiet();
      if (done) return watched;
      if (!this.#ring(Infinity))
        throw new Error("the work has not ended, and no timer is left that could end it");
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

  /** The number of turns, enough for every chain of promises in the code under test. */
  async #quiet(): Promise<void> {
    for (let turn = 0; turn < 30; turn += 1) await this.turn();
  }
}
