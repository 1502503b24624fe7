import { v4 as uuid } from "uuid";
import type { Ports, SqlValue, Synchronous } from "../kernel/ports.ts";
import type { WritePoint } from "../kernel/write-points.ts";
import { logEvent } from "../log.ts";
import { Timers } from "./timers.ts";

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
