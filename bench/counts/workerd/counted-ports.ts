import type { Synchronous } from "../../../src/core/ports.ts";
import { objectPorts, type PortsOf } from "../../../src/objects/ports.ts";
import type { ObjectKind } from "../raw-counts.ts";
import { counts } from "./counts.ts";

/** How far the clocks of the objects and of the cron go ahead, so that days can pass at once. */
export const clockOffset = { ms: 0 };

/**
 * Objects whose alarm is set. It never rings by itself: it would fall into work that it does not belong to.
 */
const alarmed = new WeakSet<DurableObjectState>();

/** The object's own ports, counted. */
export const countedPorts =
  (kind: ObjectKind): PortsOf =>
  (ctx) => {
    const real = objectPorts(ctx);
    let written = 0;
    return {
      ...real,
      sql: {
        ...real.sql,
        all: <Row>(statement: string, ...bindings: (string | number | null)[]) => {
          const cursor = ctx.storage.sql.exec(statement, ...bindings);
          // Read to its end first: rows are written while it runs.
          const rows = cursor.toArray() as Row[];
          counts.current[kind].rowsRead += cursor.rowsRead;
          counts.current[kind].rowsWritten += cursor.rowsWritten;
          written += cursor.rowsWritten;
          return rows;
        },
        transaction: <T>(
          points: Parameters<typeof real.sql.transaction>[0],
          work: () => Synchronous<T>,
        ): T => {
          const before = written;
          const value = real.sql.transaction(points, work);
          if (written > before) counts.current[kind].transactions += 1;
          return value;
        },
      },
      clock: { ...real.clock, now: () => Date.now() + clockOffset.ms },
      alarm: {
        // An instance that follows another one sets its own again, as when the platform has lost it.
        get: () => Promise.resolve(null),
        set: () => {
          alarmed.add(ctx);
          counts.current[kind].alarmsSet += 1;
        },
      },
    };
  };

/** Whether an alarm is to ring. From now on none is set, and the run is counted. */
export function takeAlarm(kind: ObjectKind, ctx: DurableObjectState): boolean {
  if (!alarmed.delete(ctx)) return false;
  counts.current[kind].alarmRuns += 1;
  return true;
}

/**
 * Counts the calls of every method that an object has from its real class. `prototype`: of a class that
 * extends it.
 */
export function countMessages(kind: ObjectKind, prototype: object): void {
  const real = Object.getPrototypeOf(prototype) as Record<string, (...given: unknown[]) => unknown>;
  for (const name of Object.getOwnPropertyNames(real)) {
    const method = real[name];
    // The platform calls these two, and nobody else.
    if (name === "constructor" || name === "alarm" || typeof method !== "function") continue;
    const value = function counted(this: object, ...given: unknown[]): unknown {
      counts.current[kind].messages += 1;
      return Reflect.apply(method, this, given);
    };
    Object.defineProperty(prototype, name, { value });
  }
}
