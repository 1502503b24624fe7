import { clearTimeout, setImmediate, setTimeout } from "node:timers";
import type { Clock } from "../core/ports.ts";

interface Timer {
  dueMs: number;
  fire: () => void;
  handle: NodeJS.Timeout;
  keepsProcessAlive: boolean;
}

/** Rings of one `advance`, after which the rest of the time is skipped: a lease that stays open for a month is asked about every minute. */
const MAX_TIMERS_PER_ADVANCE = 1_000;

/** The time of this machine, and what `advance` has added to it. The timers are real ones, so that tests which only wait get there too. */
export class TestClock implements Clock {
  #aheadMs = 0;
  readonly #timers = new Set<Timer>();

  now(): number {
    return Date.now() + this.#aheadMs;
  }

  after(delayMs: number, fire: () => void): () => void {
    return this.#start(delayMs, fire, true);
  }

  /** As `after`, but no reason for the process to go on. */
  inBackground(delayMs: number, fire: () => void): () => void {
    return this.#start(delayMs, fire, false);
  }

  turn(): Promise<void> {
    return new Promise((resume) => void setImmediate(resume));
  }

  /** Goes from one timer to the next, and has `untilIdle` wait for what each of them has set going. */
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

  /** No timer fired any more. */
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

  /** A timer may be early: Node knows none that are longer than `MAX_TIMEOUT_MS`. */
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

/** Node fired longer timers at once. */
const MAX_TIMEOUT_MS = 2 ** 31 - 1;
/** By how much Node's timers and its clock may differ. */
const CLOCK_TOLERANCE_MS = 5;
