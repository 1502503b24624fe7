import { DatabaseSync } from "node:sqlite";
import { v4 as newUuid } from "uuid";
import type { Clock, Ports } from "../core/ports.ts";
import type { TestClock } from "../testing/clock.ts";
import { NodeSql } from "./node-sql.ts";

/** One instance of an object: the methods that its peers call, and its alarm handler. */
export interface Instance {
  calls: object;
  alarm?: () => Promise<void>;
}

/** A failed alarm runs again after this time, as on the platform. */
const ALARM_RETRY_MS = 2_000;

/** A Durable Object in this process. Its database and its alarm persist; its instances come and go. */
export class HostedObject {
  readonly #clock: TestClock;
  readonly #log: Ports["log"];
  readonly #start: (ports: Ports) => Instance;
  readonly #database = new DatabaseSync(":memory:");
  #running: RunningInstance | undefined;
  #alarmAtMs: number | null = null;
  #cancelAlarm = (): void => {};
  #isClosed = false;
  /** Alarms that are running. */
  readonly #alarms = new Set<Promise<void>>();

  constructor(clock: TestClock, log: Ports["log"], start: (ports: Ports) => Instance) {
    this.#clock = clock;
    this.#log = log;
    this.#start = start;
  }

  /**
   * Calls a method as RPC does: in a later turn of the event loop, with copies of the message and the answer.
   */
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

  /** Waits until no alarm is running. */
  async untilIdle(): Promise<void> {
    while (this.#alarms.size > 0) await Promise.all(this.#alarms);
  }

  /** Ends the instance with everything that it has not stored. The next call or alarm starts another one. */
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
      // The instance ended before the alarm did its work. Run it again, unless a later call has set the
      // alarm.
      if (!this.#isClosed && this.#alarmAtMs === null) this.#setAlarm(this.#clock.now() + ALARM_RETRY_MS);
    }
  }
}

/** An instance with its storage, timers and callers. It loses them when it ends. */
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

  /** Carries out a call. The call fails when the instance ends. */
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
