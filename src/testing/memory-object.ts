import { DatabaseSync } from "node:sqlite";
import { v4 as newUuid } from "uuid";
import type { Clock, Ports } from "../core/ports.ts";
import type { TestClock } from "./clock.ts";
import { NodeSql } from "./node-sql.ts";

/** One instance of an object: its methods, as its peers call them, and what its alarm does. */
export interface Instance {
  calls: object;
  alarm?: () => Promise<void>;
}

/** An alarm that failed rings again after so long, as on the platform. */
const ALARM_RETRY_MS = 2_000;

/** A Durable Object in this process: a database and an alarm, which stay, and an instance, which comes and goes. */
export class MemoryObject {
  readonly #clock: TestClock;
  readonly #log: Ports["log"];
  readonly #start: (ports: Ports) => Instance;
  readonly #database = new DatabaseSync(":memory:");
  #running: RunningInstance | undefined;
  #alarmAtMs: number | null = null;
  #cancelAlarm = (): void => {};
  #isClosed = false;
  /** The runs of its alarm that have not come to their end. */
  readonly #alarms = new Set<Promise<void>>();

  constructor(clock: TestClock, log: Ports["log"], start: (ports: Ports) => Instance) {
    this.#clock = clock;
    this.#log = log;
    this.#start = start;
  }

  /** Calls a method the way RPC does: in a turn of its own, with copies of what goes in and comes out. */
  async call(method: string, message: unknown): Promise<unknown> {
    const copy: unknown = structuredClone(message);
    await this.#clock.turn();
    const running = this.#instance();
    const answer = await running.during(async () => {
      const calls = running.instance.calls as Record<
        string,
        ((message: unknown) => Promise<unknown>) | undefined
      >;
      const work = calls[method];
      if (work === undefined) throw new TypeError(`the object has no method ${method}`);
      return work(copy);
    });
    return structuredClone(answer);
  }

  /** Until no alarm is at work. */
  async untilIdle(): Promise<void> {
    while (this.#alarms.size > 0) await Promise.all(this.#alarms);
  }

  /** The instance is gone, with all that it had not stored. The next call, or the alarm, makes another one. */
  restart(): void {
    this.#running?.end(new Error("the object was restarted"));
    this.#running = undefined;
  }

  close(): void {
    this.#isClosed = true;
    this.restart();
    this.#cancelAlarm();
    this.#database.close();
  }

  #instance(): RunningInstance {
    if (this.#isClosed) throw new Error("the object was closed");
    this.#running ??= this.#begin();
    return this.#running;
  }

  #begin(): RunningInstance {
    const running = new RunningInstance(this.#database, this.#clock);
    running.instance = this.#start({
      sql: running.sql,
      clock: running.clock,
      randomness: { uuid: () => newUuid(), fraction: () => Math.random() },
      alarm: { get: async () => this.#alarmAtMs, set: (atMs) => this.#setAlarm(atMs) },
      halt: (reason) => {
        running.end(reason instanceof Error ? reason : new Error(String(reason)));
        if (this.#running === running) this.#running = undefined;
      },
      log: this.#log,
    });
    return running;
  }

  #setAlarm(atMs: number): void {
    this.#cancelAlarm();
    this.#alarmAtMs = atMs;
    this.#cancelAlarm = this.#clock.inBackground(atMs - this.#clock.now(), () => {
      const alarm = this.#runAlarm().finally(() => this.#alarms.delete(alarm));
      this.#alarms.add(alarm);
    });
  }

  async #runAlarm(): Promise<void> {
    this.#alarmAtMs = null;
    try {
      const running = this.#instance();
      await running.during(async () => running.instance.alarm?.());
    } catch {
      // Its instance ended. What it was about to do is still to be done, unless somebody has set the alarm since.
      if (!this.#isClosed && this.#alarmAtMs === null) this.#setAlarm(this.#clock.now() + ALARM_RETRY_MS);
    }
  }
}

/** What an instance has, and loses when it ends: its way to the storage, its timers and its callers. */
class RunningInstance {
  instance: Instance = { calls: {} };
  readonly sql: NodeSql;
  readonly clock: Clock;
  readonly #cancels = new Set<() => void>();
  readonly #callers = new Set<(reason: Error) => void>();
  #ended: Error | undefined;

  constructor(database: DatabaseSync, clock: TestClock) {
    this.sql = new NodeSql(database);
    this.clock = {
      now: () => clock.now(),
      turn: () => clock.turn(),
      after: (delayMs, then) => this.#after(clock, delayMs, then),
    };
  }

  /** Carries out a call, which fails at the latest when the instance ends. */
  during<T>(work: () => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      if (this.#ended !== undefined) return reject(this.#ended);
      this.#callers.add(reject);
      work()
        .finally(() => this.#callers.delete(reject))
        .then(resolve, reject);
    });
  }

  end(reason: Error): void {
    this.#ended = reason;
    this.sql.revoke();
    for (const cancel of this.#cancels) cancel();
    for (const reject of this.#callers) reject(reason);
  }

  #after(clock: TestClock, delayMs: number, then: () => void): () => void {
    if (this.#ended !== undefined) return () => {};
    const stop = clock.after(delayMs, () => {
      this.#cancels.delete(cancel);
      then();
    });
    const cancel = (): void => {
      this.#cancels.delete(cancel);
      stop();
    };
    this.#cancels.add(cancel);
    return cancel;
  }
}
