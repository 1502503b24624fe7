import type { Synchronous } from "../../../src/coordinator/kernel/ports.ts";
import { objectPorts, type PortsOf } from "../../../src/coordinator/objects/ports.ts";
import type { ObjectKind } from "../raw-counts.ts";
import { counts } from "./counts.ts";

/**
 * The clock of the objects and the cron, which a benchmark can advance, and stop. While it is stopped, the
 * timers of an object ring in `ringTimers`.
 */
export const clock = {
  offsetMs: 0,
  isStopped: false,
  now: (): number => (clock.isStopped ? 0 : Date.now()) + clock.offsetMs,
  stop: (): void => {
    clock.offsetMs = clock.now();
    clock.isStopped = true;
  },
};

interface Timer {
  atMs: number;
  ring: () => void;
}

const timers = new WeakMap<DurableObjectState, Set<Timer>>();
/** Enough for a timer that rings to start a message. */
const TURNS = 5;

/**
 * Rings the timers of an object that are due, and waits until the messages that they cause are answered: each
 * has a timer itself.
 */
export async function ringTimers(ctx: DurableObjectState): Promise<void> {
  const waiting = timers.get(ctx) ?? new Set();
  const due = [...waiting].filter(({ atMs }) => atMs <= clock.now());
  for (const timer of due) waiting.delete(timer);
  const others = waiting.size;
  for (const { ring } of due) ring();
  for (let turn = 0; due.length > 0 && (turn < TURNS || waiting.size > others); turn += 1)
    await objectPorts(ctx).clock.turn();
}

/**
 * The objects with an alarm set. An alarm only runs on request, so that it does not fall into the count of
 * other work.
 */
const alarmed = new WeakSet<DurableObjectState>();

/** The production ports of an object, with counters. */
export const countedPorts =
  (kind: ObjectKind): PortsOf =>
  (ctx) => {
    const real = objectPorts(ctx);
    let written = 0;
    const waiting = new Set<Timer>();
    timers.set(ctx, waiting);
    return {
      ...real,
      sql: {
        ...real.sql,
        all: <Row>(statement: string, ...bindings: (string | number | null)[]) => {
          const cursor = ctx.storage.sql.exec(statement, ...bindings);
          // The counts of a cursor are complete only at its end, because it writes rows while it is read.
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
      clock: {
        ...real.clock,
        now: clock.now,
        after: (delayMs, ring) => {
          if (!clock.isStopped) return real.clock.after(delayMs, ring);
          const timer = { atMs: clock.now() + delayMs, ring };
          waiting.add(timer);
          return () => void waiting.delete(timer);
        },
      },
      alarm: {
        // Always null, so that a new instance sets its alarm again, as it does when the platform has lost it.
        get: () => Promise.resolve(null),
        set: () => {
          alarmed.add(ctx);
          counts.current[kind].alarmsSet += 1;
        },
      },
    };
  };

/** Whether an alarm is set. If so, clears it and counts the run. */
export function takeAlarm(kind: ObjectKind, ctx: DurableObjectState): boolean {
  if (!alarmed.delete(ctx)) return false;
  counts.current[kind].alarmRuns += 1;
  return true;
}

/** Counts the calls of every method that `prototype` inherits from the production class. */
export function countMessages(kind: ObjectKind, prototype: object): void {
  const real = Object.getPrototypeOf(prototype) as Record<string, (...given: unknown[]) => unknown>;
  for (const name of Object.getOwnPropertyNames(real)) {
    const method = real[name];
    // Only the platform calls these two.
    if (name === "constructor" || name === "alarm" || typeof method !== "function") continue;
    const value = function counted(this: object, ...given: unknown[]): unknown {
      counts.current[kind].messages += 1;
      return Reflect.apply(method, this, given);
    };
    Object.defineProperty(prototype, name, { value });
  }
}
