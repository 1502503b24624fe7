import type { Ports } from "../../../src/coordinator/kernel/ports.ts";
import type { WritePoint } from "../../../src/coordinator/kernel/write-points.ts";
import { Disk, InstanceSql } from "./disk.ts";
import type { Faults } from "./faults.ts";
import type { Owner, Scheduler } from "./scheduler.ts";
import { Violation } from "./violation.ts";

/**
 * The platform retries a failed alarm six times, the first time after 2 s, and doubles each pause. Then the
 * alarm is lost without a message.
 */
const ALARM_RETRIES = 6;
const ALARM_PAUSE_MS = 2_000;

/** What a part writes after it has noticed that it went back in time (H4, M9). */
const STOPPED_WRITES: ReadonlySet<WritePoint> = new Set([
  "raise_format",
  "fence",
  "rebuild_leases",
  "accept_loss",
  "restore_directory",
]);

export interface PartContext {
  scheduler: Scheduler;
  faults: Faults;
  log: (part: string, event: string, fields: Record<string, unknown>) => void;
  /** The run has violated something. */
  fail: (violation: Violation) => void;
}

/** One instance of an object. A replaced instance keeps running without its storage until it notices. */
export class Instance<T> implements Owner {
  readonly name: string;
  readonly serial: number;
  /** The newest format that its code speaks. Undefined in a run of one version. */
  readonly speaks: number | undefined;
  readonly sql: InstanceSql;
  dead = false;
  /** It has answered a message, so it has read its alarm. */
  isAdmitted = false;
  isReplaced = false;
  /** Called when the instance ends while it works on a call. */
  readonly onDeath = new Set<() => void>();
  #object: T | undefined;

  constructor(
    name: string,
    serial: number,
    speaks: number | undefined,
    sql: InstanceSql,
    make: (instance: Instance<T>) => T,
  ) {
    this.name = name;
    this.serial = serial;
    this.speaks = speaks;
    this.sql = sql;
    this.#object = make(this);
  }

  get object(): T {
    if (this.#object === undefined) throw new Error(`${this.name} is being made`);
    return this.#object;
  }

  die(): void {
    this.dead = true;
    for (const notify of this.onDeath) notify();
    this.onDeath.clear();
  }
}

interface WithAlarm {
  alarm?: () => Promise<void>;
}

/** A ledger, a shard or the directory: its disk, its alarm, and one instance after the other. */
export class Part<T extends object> {
  readonly name: string;
  readonly disk = new Disk();
  /** The newest format that the code of the next instance speaks. Undefined in a run of one version. */
  speaks: number | undefined;
  skewMs = 0;
  /** The platform lost the alarm. Nothing wakes the object until the next alarm is set. */
  alarmLost = false;
  isLossKnown = false;
  /** How many of the next reads of the alarm fail. */
  unreadableAlarms = 0;
  readonly #context: PartContext;
  readonly #make: (ports: Ports, self: Owner) => T;
  #instance: Instance<T> | undefined;
  #serial = 0;
  #generation = 0;
  /** The number of entries written in each step, oldest first. */
  #batches: { step: number; entries: number }[] = [];
  #written = 0;
  #persisted = 0;
  #waiters: { upTo: number; resolve: () => void; reject: (error: Error) => void }[] = [];
  #cancelAlarm: () => void = () => {};
  #ringing: { instance: Instance<T>; tried: number } | undefined;
  #isRetrying = false;

  constructor(
    name: string,
    speaks: number | undefined,
    context: PartContext,
    make: (ports: Ports, self: Owner) => T,
  ) {
    this.name = name;
    this.speaks = speaks;
    this.#context = context;
    this.#make = make;
    this.disk.onWrite = () => this.#wrote();
    this.disk.onTransaction = (points, wasStopped) => {
      this.#checkCode(points.join(", "));
      if (!wasStopped || points.some((point) => STOPPED_WRITES.has(point))) return;
      const message = `${name} has gone back in time and knows it, but writes ${points.join(", ")}`;
      context.fail(new Violation("I24", message));
    };
    this.disk.onAlarm = () => {
      this.#checkCode("its alarm");
      if (this.alarmLost) context.faults.count("alarm_restored");
      this.alarmLost = false;
      this.#arm();
    };
  }

  nowMs(): number {
    return Math.floor(this.#context.scheduler.nowMs + this.skewMs);
  }

  /** The current instance, if there is one. */
  get current(): Instance<T> | undefined {
    return this.#instance;
  }

  /** The platform will wake the object: an alarm is set, is ringing, or will be retried. */
  get isAwaited(): boolean {
    return this.disk.liveAlarmMs !== null || this.#ringing !== undefined || this.#isRetrying;
  }

  /** The instance that handles the next event. */
  instance(): Instance<T> {
    if (this.#instance === undefined) {
      this.#serial += 1;
      // A new instance reads its alarm. From its first answer on, a lost alarm no longer explains a missing
      // one.
      this.isLossKnown = true;
      const sql = new InstanceSql(this.disk, () => this.#flush());
      this.#instance = new Instance(this.name, this.#serial, this.speaks, sql, (made) =>
        this.#make(this.#ports(made), made),
      );
    }
    return this.#instance;
  }

  /** The process ends. `keep`: how many of the pending writes survive. */
  crash(keep = this.#drawKept()): void {
    const ended = this.#instance;
    this.#instance = undefined;
    this.#cut(keep);
    ended?.die();
    this.#redeliverAlarm(ended);
  }

  /** Another instance takes over. The old one may still send messages, but has no storage. */
  replace(keep = this.#drawKept(), error = new Error("the storage was taken away")): void {
    const before = this.#instance;
    this.#instance = undefined;
    before?.sql.revoke();
    if (before !== undefined) before.isReplaced = true;
    const waiters = this.#waiters;
    this.#cut(keep);
    for (const { reject } of waiters) reject(error);
    this.#redeliverAlarm(before);
  }

  /** A deployment: the next instance has other code. */
  deploy(speaks: number, isSudden: boolean): void {
    this.speaks = speaks;
    if (isSudden) this.crash();
    else this.replace();
  }

  /** The process ends, and starts with the storage that it had at an earlier version. */
  goBack(version: number): void {
    this.crash(0);
    this.disk.goBack(version);
    this.#arm();
  }

  loseAlarm(): boolean {
    if (this.disk.liveAlarmMs === null) return false;
    this.disk.clearAlarm();
    this.#lost("lose_alarm");
    this.#arm();
    return true;
  }

  jump(ms: number): void {
    this.skewMs += ms;
    this.#arm();
  }

  #lost(how: string): void {
    this.alarmLost = true;
    this.isLossKnown = false;
    this.#context.faults.count(how);
  }

  #ports(instance: Instance<T>): Ports {
    const { scheduler, faults, log } = this.#context;
    const random = faults.stream(`random ${this.name}`);
    return {
      sql: instance.sql,
      clock: {
        now: () => this.nowMs(),
        after: (delayMs, then) => scheduler.after(delayMs, instance, then),
        turn: () => scheduler.sleep(faults.turnMs(this.name), instance),
      },
      randomness: { uuid: () => random.uuid(), fraction: () => random.next() },
      alarm: {
        get: async () => {
          if (this.unreadableAlarms > 0 && !faults.areOff) {
            this.unreadableAlarms -= 1;
            faults.count("alarm_unreadable");
            throw new Error("the alarm cannot be read");
          }
          return this.disk.liveAlarmMs;
        },
        set: (atMs) => {
          // A replaced instance cannot write, and an alarm is a write.
          if (this.#instance === instance) this.disk.setAlarm(atMs);
        },
      },
      halt: () => {
        if (this.#instance === instance) this.crash();
        else instance.die();
      },
      log: (event, fields) => log(this.name, event, fields),
      ...(this.speaks === undefined ? {} : { speaks: this.speaks }),
    };
  }

  /** Code that does not speak the format in force writes nothing (M5). */
  #checkCode(written: string): void {
    const { speaks } = this;
    if (speaks === undefined) return;
    const format = this.disk.liveFormat;
    if (format <= speaks) return;
    const message = `${this.name} speaks format ${speaks}, and writes ${written} in format ${format}`;
    this.#context.fail(new Violation("I58", message));
  }

  #wrote(): void {
    const { scheduler, faults } = this.#context;
    this.#written += 1;
    const last = this.#batches.at(-1);
    if (last?.step === scheduler.steps) {
      last.entries += 1;
      return;
    }
    this.#batches.push({ step: scheduler.steps, entries: 1 });
    const generation = this.#generation;
    scheduler.after(faults.diskMs(this.name), undefined, () => {
      if (generation === this.#generation) this.#persistOldest();
    });
  }

  /**
   * Waits until all writes are durable. Each write becomes durable on its own, in order, so a flush only
   * waits.
   */
  #flush(): Promise<void> {
    if (this.#persisted === this.#written) return Promise.resolve();
    return new Promise((resolve, reject) => {
      this.#waiters.push({ upTo: this.#written, resolve, reject });
    });
  }

  #persistOldest(): void {
    const entries = this.#batches[0]?.entries ?? 0;
    const fault = this.#context.faults.disk(this.name, this.disk.pendingPoints);
    switch (fault) {
      case "crash_before":
        return this.crash(0);
      case "crash_after":
        return this.crash(entries);
      case "replace_before":
        return this.replace(0);
      case "replace_after":
        return this.replace(entries);
      case "fail_lost":
        return this.replace(0, new Error("the disk did not answer"));
      case "fail_durable":
        return this.replace(entries, new Error("the disk did not answer"));
      case undefined: {
        this.#batches.shift();
        this.disk.persist(entries);
        this.#persisted += entries;
        const done = this.#waiters.filter(({ upTo }) => upTo <= this.#persisted);
        this.#waiters = this.#waiters.filter(({ upTo }) => upTo > this.#persisted);
        for (const { resolve } of done) resolve();
      }
    }
  }

  #cut(keep: number): void {
    for (const point of this.disk.pendingPoints) this.#context.faults.count(`cut ${point}`);
    const hadAlarm = this.disk.liveAlarmMs !== null;
    this.disk.cut(keep);
    if (hadAlarm && this.disk.liveAlarmMs === null) this.#lost("alarm_cut");
    this.#generation += 1;
    this.#batches = [];
    this.#waiters = [];
    this.#persisted = this.#written;
    this.#arm();
  }

  #drawKept(): number {
    return this.#context.faults.stream(`kept ${this.name}`).between(0, this.disk.pending);
  }

  #arm(): void {
    this.#cancelAlarm();
    const atMs = this.disk.liveAlarmMs;
    if (atMs === null) return;
    this.#cancelAlarm = this.#context.scheduler.after(atMs - this.nowMs(), undefined, () => {
      if (this.disk.liveAlarmMs !== atMs) return;
      this.disk.clearAlarm();
      this.#ring(0);
    });
  }

  #ring(tried: number): void {
    const instance = this.instance();
    const { alarm } = instance.object as WithAlarm;
    if (alarm === undefined) return;
    const ringing = { instance, tried };
    this.#ringing = ringing;
    alarm.call(instance.object).then(
      () => {
        if (this.#ringing === ringing) this.#ringing = undefined;
      },
      () => {
        if (this.#ringing === ringing) this.#redeliverAlarm(instance);
      },
    );
  }

  /** Retries an alarm handler that failed or whose instance ended, unless a new time was set. */
  #redeliverAlarm(ended: Instance<T> | undefined): void {
    const ringing = this.#ringing;
    if (ringing === undefined || ringing.instance !== ended) return;
    this.#ringing = undefined;
    if (this.disk.liveAlarmMs !== null) return;
    if (ringing.tried >= ALARM_RETRIES) {
      this.#lost("alarm_exhausted");
      return;
    }
    this.#context.faults.count("alarm_redelivered");
    this.#retryAlarm(ringing.tried + 1);
  }

  #retryAlarm(tried: number): void {
    this.#isRetrying = true;
    this.#context.scheduler.after(ALARM_PAUSE_MS * 2 ** (tried - 1), undefined, () => {
      this.#isRetrying = false;
      // A new time that was set in the meantime replaces the retry.
      if (this.disk.liveAlarmMs === null && this.#ringing === undefined) this.#ring(tried);
    });
  }
}
