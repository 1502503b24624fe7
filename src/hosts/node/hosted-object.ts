import { v4 as newUuid } from "uuid";
import type { Clock, Ports } from "../../coordinator/kernel/ports.ts";
import { withoutQuotes } from "../../coordinator/d1/database.ts";
import { NodeSql, type SqliteDatabase } from "./sqlite-database.ts";
import type { ObjectStore } from "./object-store.ts";

/** One instance of an object. */
export interface Instance {
  call(method: string, message: unknown): Promise<unknown>;
  alarm(): Promise<void>;
}

/** The instance that sends a message to another object. */
export interface Sender {
  readonly database: SqliteDatabase;
  /** Throws if it has ended, because then it must send nothing. */
  checkAlive(): void;
}

/** Starts an instance. Every message that it sends must name the sender. */
export type StartInstance = (ports: Ports, sender: Sender) => Instance;

/** What all objects of a host share. */
export interface ObjectContext {
  clock: HostClock;
  log: Ports["log"];
  alarms: AlarmQueue;
}

/**
 * A failed alarm runs again after this time, and after twice as long each time, as on the platform. The
 * platform gives up after six retries. Here nothing else may ever wake the object, so it goes on.
 */
const FIRST_RETRY_MS = 2_000;
const MAX_RETRY_MS = 64_000;

/**
 * An object like a Durable Object, in this process. What it stores and its alarm persist; its instances come
 * and go. It has an output gate (B5, C2): what leaves it waits until all that was written until then is
 * durable, whether it rests on that or not. Only between objects with one write-ahead log, messages and
 * answers don't wait: a crash keeps a prefix of the log, so it keeps no write without those that it rests on.
 */
export class HostedObject {
  readonly #name: string;
  readonly #context: ObjectContext;
  readonly #store: ObjectStore;
  readonly #start: StartInstance;
  #running: RunningInstance | undefined;
  #alarmAtMs: number | null;
  #cancelAlarm = (): void => {};
  /** The failures of the alarm since it last ended well. */
  #failures = 0;
  #isClosed = false;

  constructor(name: string, context: ObjectContext, store: ObjectStore, start: StartInstance) {
    this.#name = name;
    this.#context = context;
    this.#store = store;
    this.#start = start;
    this.#alarmAtMs = store.alarmAtMs;
    if (this.#alarmAtMs !== null) this.#scheduleAlarm(this.#alarmAtMs);
  }

  /**
   * Calls a method as RPC does, in a later turn of the event loop. The message and the answer are passed on
   * as they are, because nobody changes them once they are sent. The simulator freezes those of the core.
   *
   * @param sender - undefined: the Worker, which passes answers on to callers outside of the process
   */
  async call(method: string, message: unknown, sender?: Sender): Promise<unknown> {
    const { database } = this.#store;
    sender?.checkAlive();
    await ((sender && gate(sender.database, database)) ?? this.#context.clock.turn());
    sender?.checkAlive();
    const running = this.#instance();
    return running.during(async () => {
      try {
        return await running.instance.call(method, message);
      } finally {
        await gate(database, sender?.database);
      }
    });
  }

  /** Ends the instance with everything that it has not stored. The next call or alarm starts another one. */
  restart(): void {
    this.#running?.end(new Error("the object was restarted"));
    this.#running = undefined;
  }

  /** Ends the instance, and starts no other one. Nothing is written any more. */
  end(): void {
    this.#isClosed = true;
    this.restart();
    this.#cancelAlarm();
  }

  close(): void {
    this.end();
    this.#store.close();
  }

  #instance(): RunningInstance {
    if (this.#isClosed) throw new Error("the object was closed");
    this.#running ??= this.#begin();
    return this.#running;
  }

  #begin(): RunningInstance {
    const running = new RunningInstance(new NodeSql(this.#store.database), this.#context.clock);
    const ports: Ports = {
      sql: running.sql,
      clock: running.clock,
      randomness: { uuid: () => newUuid(), fraction: () => Math.random() },
      alarm: {
        get: async () => this.#alarmAtMs,
        set: (atMs) => {
          if (!running.hasEnded) this.#setAlarm(atMs);
        },
      },
      halt: (reason) => {
        running.end(reason instanceof Error ? reason : new Error(String(reason)));
        if (this.#running === running) this.#running = undefined;
      },
      log: this.#context.log,
    };
    running.instance = this.#start(ports, {
      database: this.#store.database,
      checkAlive: () => running.checkAlive(),
    });
    return running;
  }

  #setAlarm(dueMs: number): void {
    // The core sets alarms with jitter, and a file stores whole milliseconds.
    const atMs = Math.ceil(dueMs);
    this.#alarmAtMs = atMs;
    this.#store.setAlarm(atMs);
    this.#scheduleAlarm(atMs);
  }

  #scheduleAlarm(atMs: number): void {
    this.#cancelAlarm();
    const { clock, alarms } = this.#context;
    this.#cancelAlarm = clock.inBackground(atMs - clock.now(), () => {
      this.#cancelAlarm = alarms.add(() => this.#runAlarm());
    });
  }

  /** The stored alarm is removed only when its work is done, so a crash repeats it. */
  async #runAlarm(): Promise<void> {
    this.#alarmAtMs = null;
    try {
      const running = this.#instance();
      await running.during(async () => running.instance.alarm());
      this.#failures = 0;
      if (!this.#isClosed && this.#alarmAtMs === null) this.#store.setAlarm(null);
    } catch (error) {
      if (!this.#isClosed) this.#retryAlarm(error);
    }
  }

  /** Runs the alarm again, unless it has been set meanwhile. */
  #retryAlarm(error: unknown): void {
    const { clock, log } = this.#context;
    const cause = withoutQuotes(error instanceof Error ? error.message : String(error));
    log("alarm_failed", { object: this.#name, error: cause });
    const delayMs = Math.min(FIRST_RETRY_MS * 2 ** this.#failures, MAX_RETRY_MS);
    this.#failures += 1;
    if (this.#alarmAtMs === null) this.#setAlarm(clock.now() + delayMs);
  }
}

/** Resolves when something may pass from one object to another, or to the Worker. Undefined: it may now. */
const gate = (from: SqliteDatabase, to: SqliteDatabase | undefined): Promise<void> | undefined =>
  from.isDurable || (to !== undefined && from.sharesLogWith(to)) ? undefined : from.flush();

/** An instance with its storage, timers and callers. It loses them when it ends. */
class RunningInstance {
  /** Set once it has started. */
  instance!: Instance;
  readonly sql: NodeSql;
  readonly clock: Clock;
  readonly #cancels = new Set<() => void>();
  readonly #callers = new Set<(reason: Error) => void>();
  #ended: Error | undefined;

  constructor(sql: NodeSql, clock: HostClock) {
    this.sql = sql;
    this.clock = {
      now: () => clock.now(),
      turn: () => clock.turn(),
      after: (delayMs, then) => this.#after(clock, delayMs, then),
    };
  }

  get hasEnded(): boolean {
    return this.#ended !== undefined;
  }

  checkAlive(): void {
    if (this.#ended !== undefined) throw this.#ended;
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

  #after(clock: HostClock, delayMs: number, then: () => void): () => void {
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

/** The most alarms that run at once. */
const MAX_AT_ONCE = 8;

/**
 * Runs the alarms of all objects of a host, in the order in which they became due, a few at a time. After a
 * long stop the alarms of all objects are due at once, and requests must not wait for all of them.
 */
export class AlarmQueue {
  /** Alarms that are due and have not begun. */
  readonly #waiting = new Set<() => Promise<void>>();
  readonly #running = new Set<Promise<void>>();
  #isHeld = false;

  /** Adds an alarm that is due. Returns a function that removes it, if it has not begun. */
  add(ring: () => Promise<void>): () => void {
    this.#waiting.add(ring);
    this.#startNext();
    return () => void this.#waiting.delete(ring);
  }

  /** Begins no alarm before `release`. */
  hold(): void {
    this.#isHeld = true;
  }

  release(): void {
    this.#isHeld = false;
    this.#startNext();
  }

  /** Waits until no alarm is running or due. */
  async untilIdle(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running);
  }

  /** Every alarm that ends starts another one, so alarms wait only while others run, or while held. */
  #startNext(): void {
    for (const ring of this.#waiting) {
      if (this.#isHeld || this.#running.size >= MAX_AT_ONCE) return;
      this.#waiting.delete(ring);
      const running = ring().finally(() => {
        this.#running.delete(running);
        this.#startNext();
      });
      this.#running.add(running);
    }
  }
}

/** The clock of a host, and of all its objects. */
export interface HostClock extends Clock {
  /** As `after`, but the timer does not keep the process alive. */
  inBackground(delayMs: number, fire: () => void): () => void;
}
