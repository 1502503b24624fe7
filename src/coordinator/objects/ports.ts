import { v4 as uuid } from "uuid";
import type { Ports, SqlValue, Synchronous } from "../kernel/ports.ts";
import type { WritePoint } from "../kernel/write-points.ts";
import { logEvent } from "../log.ts";

/**
 * Makes the ports of an object. The platform passes no third argument to a constructor, so only a test can
 * pass another function.
 */
export type PortsOf = (ctx: DurableObjectState) => Ports;

/** Makes the ports of the core inside a Durable Object. */
export function objectPorts(ctx: DurableObjectState): Ports {
  const { storage } = ctx;
  const timers = new Timers();
  return {
    sql: {
      all: <Row>(statement: string, ...bindings: SqlValue[]) =>
        storage.sql.exec(statement, ...bindings).toArray() as Row[],
      transaction: <T>(_points: readonly WritePoint[], work: () => Synchronous<T>) =>
        storage.transactionSync<T>(work),
      flush: () => storage.sync(),
      sizeBytes: () => storage.sql.databaseSize,
    },
    clock: {
      now: () => Date.now(),
      after: (delayMs, then) => timers.after(delayMs, then),
      // Yields to the event loop. A timer of 0 ms would do so too, but takes a millisecond in workerd. The
      // output gate delays messages until these writes are durable anyway. `flush` reports whether the writes
      // failed.
      turn: () => storage.sync().catch(() => {}),
    },
    randomness: { uuid: () => uuid(), fraction: () => Math.random() },
    alarm: {
      get: () => storage.getAlarm(),
      // Not awaited: the alarm is part of the writes of this turn, and the output gate holds answers back
      // until all of them are durable.
      set: (atMs) => void storage.setAlarm(atMs),
    },
    halt: (reason) => ctx.abort(reason instanceof Error ? reason.message : String(reason)),
    log: logEvent,
  };
}

/** How often waiting deadlines are looked at, and how late they may end. */
const TICK_MS = 100;
/** Shorter delays are pauses, not deadlines, and end exactly on time. */
const SHARED_FROM_MS = 500;

/** Deadlines that end at the same tick. */
interface Window {
  waiting: Set<() => void>;
  /** The latest of their ends. */
  endMs: number;
}

/*
 * workerd has no monotonic clock for JavaScript: `performance.now()` returns what `Date.now()` returns
 * (src/workerd/api/performance.c++), and timers are ordered by the wall clock (TimeoutManagerImpl in
 * src/workerd/io/io-context.c++). Measured with workerd 1.20261102.1 and a clock that went back by an hour:
 * both stand still, and of all timers only the one that was armed already ends; new ones wait, too, until
 * the clock has caught up. Only a restart of the process helps; src/hosts/workerd/runtime-watch.ts does it.
 */
/**
 * The timers of one object. Each call sets several deadlines, and nearly all of them are cancelled long
 * before they end. In workerd, a timer that is cleared keeps some 250 bytes until its object ends, so an
 * object that is always busy would grow without end. Therefore all deadlines share one timer that is never
 * cleared: it ends `TICK_MS` later, and is set again only if something still waits. An object is kept awake
 * no longer than that.
 */
export class Timers {
  readonly #windows = new Map<number, Window>();
  #ticks = 0;
  #isTicking = false;

  /** Calls `then` after `delayMs`. Returns a function that cancels the call. */
  after(delayMs: number, then: () => void): () => void {
    if (delayMs >= SHARED_FROM_MS) return this.#share(delayMs, then);
    const timer = setTimeout(then, delayMs);
    return () => clearTimeout(timer);
  }

  #share(delayMs: number, then: () => void): () => void {
    // One more than fit into the delay, because the next tick may come at once.
    const last = this.#ticks + Math.ceil(delayMs / TICK_MS) + 1;
    const window = this.#windows.get(last) ?? { waiting: new Set(), endMs: 0 };
    this.#windows.set(last, window);
    window.endMs = Math.max(window.endMs, Date.now() + delayMs);
    // Each wait gets a function of its own, because the same `then` may wait twice.
    const wake = (): void => then();
    window.waiting.add(wake);
    this.#setTimer();
    return () => {
      window.waiting.delete(wake);
      if (window.waiting.size === 0 && this.#windows.get(last) === window) this.#windows.delete(last);
    };
  }

  #setTimer(): void {
    if (this.#isTicking || this.#windows.size === 0) return;
    this.#isTicking = true;
    setTimeout(() => this.#tick(), TICK_MS);
  }

  /** Ends what is due by the clock, or by the number of ticks if the clock went back. */
  #tick(): void {
    this.#isTicking = false;
    this.#ticks += 1;
    const nowMs = Date.now();
    const due = [...this.#windows].filter(([last, { endMs }]) => last <= this.#ticks || endMs <= nowMs);
    for (const [last] of due) this.#windows.delete(last);
    this.#setTimer();
    for (const [, { waiting }] of due) for (const wake of waiting) wake();
  }
}
