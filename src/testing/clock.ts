import { clearTimeout, setImmediate, setTimeout } from "node:timers";
import type { Clock } from "../core/ports.ts";

interface Timer {
  dueMs: number;
  ring: () => void;
  handle: NodeJS.Timeout;
  keepsAwake: boolean;
}

/** Rings of one `advance`, after which the rest of the time is skipped: a lease that stays open for a month is asked about every minute. */
const MAX_RINGS = 1_000;

/** The time of this machine, and what `advance` has added to it. The timers are real ones, so that tests which only wait get there too. */
export class TestClock implements Clock {
  #aheadMs = 0;
  readonly #timers = new Set<Timer>();

  now(): number {
    return Date.now() + this.#aheadMs;
  }

  after(delayMs: number, ring: () => void): () => void {
    return this.#start(delayMs, ring, true);
  }

  /** As `after`, but no reason for the process to go on. */
  inBackground(delayMs: number, ring: () => void): () => void {
    return this.#start(delayMs, ring, false);
  }

  turn(): Promise<void> {
    return new Promise((resume) => void setImmediate(resume));
  }

  /** Goes from one timer to the next, and has `settle` wait for what each of them has set going. */
  async advance(ms: number, settle: () => Promise<void>): Promise<void> {
    const untilMs = this.now() + ms;
    for (let rings = 0; rings < MAX_RINGS; rings += 1) {
      const next = this.#next();
      if (next === undefined || next.dueMs > untilMs) break;
      this.#jumpTo(next.dueMs);
      this.#ring(next);
      await settle();
    }
    this.#jumpTo(untilMs);
    await settle();
  }

  /** No timer rings any more. */
  stop(): void {
    for (const { handle } of this.#timers) clearTimeout(handle);
    this.#timers.clear();
  }

  #start(delayMs: number, ring: () => void, keepsAwake: boolean): () => void {
    const timer: Timer = {
      dueMs: this.now() + delayMs,
      ring,
      keepsAwake,
      handle: this.#wait(delayMs, keepsAwake, () => this.#ring(timer)),
    };
    this.#timers.add(timer);
    return () => this.#remove(timer);
  }

  #wait(delayMs: number, keepsAwake: boolean, then: () => void): NodeJS.Timeout {
    const handle = setTimeout(then, Math.min(Math.max(0, delayMs), LONGEST_WAIT_MS));
    return keepsAwake ? handle : handle.unref();
  }

  /** A timer may be early: Node knows none that are longer than `LONGEST_WAIT_MS`. */
  #ring(timer: Timer): void {
    const leftMs = timer.dueMs - this.now();
    if (leftMs > EARLY_MS) {
      timer.handle = this.#wait(leftMs, timer.keepsAwake, () => this.#ring(timer));
      return;
    }
    this.#remove(timer);
    timer.ring();
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
      timer.handle = this.#wait(timer.dueMs - this.now(), timer.keepsAwake, () => this.#ring(timer));
    }
  }
}

/** Node rings longer timers at once. */
const LONGEST_WAIT_MS = 2 ** 31 - 1;
/** By how much Node's timers and its clock may differ. */
const EARLY_MS = 5;
