import { v4 as uuid } from "uuid";
import type { Ports, SqlValue, Synchronous } from "../core/ports.ts";
import type { WritePoint } from "../core/write-points.ts";
import { logEvent } from "../log.ts";
import { Timers } from "./timers.ts";

/** How an object gets its ports. The platform gives no third argument to a constructor, so only a test can pass another one. */
export type PortsOf = (ctx: DurableObjectState) => Ports;

/** The ports of the core, inside a Durable Object. */
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
    },
    clock: {
      now: () => Date.now(),
      after: (delayMs, then) => timers.after(delayMs, then),
      // Comes back by way of the event loop. A timer of no time would too, but takes a millisecond in workerd. Writes that this waits for hold
      // back whatever is sent anyway (the output gate); whether they failed is for `flush` to say.
      turn: () => storage.sync().catch(() => {}),
    },
    randomness: { uuid: () => uuid(), fraction: () => Math.random() },
    alarm: {
      get: () => storage.getAlarm(),
      // Not awaited: it belongs to the writes of the same turn, and the output gate holds answers until all of them are durable.
      set: (atMs) => void storage.setAlarm(atMs),
    },
    halt: (reason) => ctx.abort(reason instanceof Error ? reason.message : String(reason)),
    log: logEvent,
  };
}
