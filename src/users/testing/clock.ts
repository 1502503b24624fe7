import { clearTimeout, setImmediate, setTimeout } from "node:timers";
import type { HostClock } from "../../hosts/node/hosted-object.ts";

interface Timer {
  dueMs: number;
  fire: () => void;
  handle: NodeJS.Timeout;
  keepsProcessAlive: boolean;
}

/**
 * The most timers that one `advance` fires. It skips the rest: a lease that stays open for a month is
 * inspected every minute.
 */
const MAX_TIMERS_PER_ADVANCE = 1_000;

/**
 * The time of this machine, plus the time that `advance` has added. Timers are real, so tests may also wait.
 */
export class TestClock implements HostClock {
  #aheadMs = 0;
  readonly #timers = new Set<Timer>();

  now(): number {
    return Date.now() + this.#aheadMs;
  }

  after(delayMs: number, fire: () => void): () => void {
    return this.#start(delayMs, fire, true);
  }

  inBackground(delayMs: number, fire: () => void): () => void {
    return this.#start(delayMs, fire, false);
  }

  turn(): Promise<void> {
    return new Promise((resume) => void setImmediate(resume));
  }

  /** Fires the timers that are due, one by one, and calls `untilIdle` after each. */
  async advance(ms: number, untilIdle: () => Promise<void>): Promise<void> {
    const untilMs = this.now() + ms;
    for (let fired = 0; fired < MAX_TIMERS_PER_ADVANCE; fired += 1) {
      const next = this.#next();
      if (next === undefined || next.dueMs > untilMs) break;
      this.#jumpTo(next.dueMs);
      this.#fire(next);
      await untilIdle();
    }
    this.#jumpTo(untilMs);
    await untilIdle();
  }

  /** Cancels all timers. */
  stop(): void {
    for (const { handle } of this.#timers) clearTimeout(handle);
    this.#timers.clear();
  }

  #start(delayMs: number, fire: () => void, keepsProcessAlive: boolean): () => void {
    const timer: Timer = {
      dueMs: this.now() + delayMs,
      fire,
      keepsProcessAlive,
      handle: this.#wait(delayMs, keepsProcessAlive, () => this.#fire(timer)),
    };
    this.#timers.add(timer);
    return () => this.#remove(timer);
  }

  #wait(delayMs: number, keepsProcessAlive: boolean, then: () => void): NodeJS.Timeout {
    const handle = setTimeout(then, Math.min(Math.max(0, delayMs), MAX_TIMEOUT_MS));
    return keepsProcessAlive ? handle : handle.unref();
  }

  /** Starts the timer again when it fired early, because delays are at most `MAX_TIMEOUT_MS`. */
  #fire(timer: Timer): void {
    const leftMs = timer.dueMs - this.now();
    if (leftMs > CLOCK_TOLERANCE_MS) {
      timer.handle = this.#wait(leftMs, timer.keepsProcessAlive, () => this.#fire(timer));
      return;
    }
    this.#remove(timer);
    timer.fire();
  }

  #remove(timer: Timer): void {
    clearTimeout(timer.handle);
    this.#timers.delete(timer);
  }

  #next(): Timer | undefined {
    let next: Timer | undefined;
    for (const timer of this.#timers) if (next === undefined || timer.dueMs < next.dueMs) next = timer;
    return next;
  }

  #jumpTo(atMs: number): void {
    const aheadMs = atMs - this.now();
    if (aheadMs <= 0) return;
    this.#aheadMs += aheadMs;
    for (const timer of this.#timers) {
      clearTimeout(timer.handle);
      timer.handle = this.#wait(timer.dueMs - this.now(), timer.keepsProcessAlive, () => this.#fire(timer));
    }
  }
}

/** Node's longest delay. It fires longer timers at once. */
const MAX_TIMEOUT_MS = 2 ** 31 - 1;
/** Node's timers and its clock may differ by this much. */
const CLOCK_TOLERANCE_MS = 5;
