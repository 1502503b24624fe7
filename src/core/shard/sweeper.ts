import type { Limits } from "../limits.ts";
import type { Ports } from "../ports.ts";
import { executionKey, type Inquirer } from "./inquirer.ts";
import { AlarmSchedule } from "../alarm-schedule.ts";
import type { ShardStore } from "./store.ts";

type Execution = ReturnType<ShardStore["executions"]>[number];

/** The number of executions that one sweep asks about. The others wait for the next sweep. */
const EXECUTIONS_PER_ALARM = 500;

/**
 * Inquires about holds that are older than `sweepAfterMs`, so that no hold stays after its lease is over just
 * because no begin meets it (B8). A hold of a granted lease may stay for days: the older it is, the longer
 * the pause between two inquiries about it. The pauses are in memory only, so a new instance inquires once
 * more.
 */
export class Sweeper {
  readonly #ports: Ports;
  readonly #limits: Limits;
  readonly #store: ShardStore;
  readonly #inquirer: Inquirer;
  readonly #pauses = new Map<string, number>();
  readonly #alarm: AlarmSchedule;

  constructor(ports: Ports, limits: Limits, store: ShardStore, inquirer: Inquirer) {
    this.#ports = ports;
    this.#limits = limits;
    this.#store = store;
    this.#inquirer = inquirer;
    this.#alarm = new AlarmSchedule(ports.alarm, ports.clock);
  }

  /**
   * Runs before an instance answers its first message: the previous instance may have left holds, and the
   * platform may have lost their alarm (M3).
   */
  async start(): Promise<void> {
    await this.#alarm.load();
    this.arm();
  }

  /**
   * Sets the alarm for the next sweep if there are holds (M3). Called at the start, after each run, and when
   * holds are made.
   */
  arm(): void {
    if (this.#store.hasHolds()) this.#alarm.setBy(this.#ports.clock.now() + this.#limits.sweepAfterMs);
  }

  async run(): Promise<void> {
    this.#alarm.markRung();
    // Read once, because it is a scan. A prepare that makes a hold from now on arms the alarm itself.
    const maxExecutions = EXECUTIONS_PER_ALARM + this.#pauses.size;
    const executions = this.#store.executions(maxExecutions);
    try {
      await this.#sweep(executions);
    } finally {
      const now = this.#ports.clock.now();
      if (this.#store.hasHolds()) {
        // There are executions that were not read, and they may be due.
        const next = executions.length < maxExecutions ? this.#nextDueMs(executions, now) : now;
        this.#alarm.setBy(Math.max(now + this.#limits.sweepAfterMs / 4, next));
      }
    }
  }

  async #sweep(executions: readonly Execution[]): Promise<void> {
    const now = this.#ports.clock.now();
    const present = new Set(executions.map(executionKey));
    for (const key of this.#pauses.keys()) if (!present.has(key)) this.#pauses.delete(key);
    const due = executions
      .filter(
        (hold) =>
          hold.heldAtMs <= now - this.#limits.sweepAfterMs &&
          (this.#pauses.get(executionKey(hold)) ?? 0) <= now,
      )
      .slice(0, EXECUTIONS_PER_ALARM);
    const verdicts = await this.#inquirer.inquire(due);
    for (const hold of due) {
      const verdict = verdicts.get(executionKey(hold));
      if (verdict === "granted" || verdict === "running" || verdict === "unknown")
        this.#pauses.set(executionKey(hold), now + this.#pauseMs(now - hold.heldAtMs));
    }
  }

  #pauseMs(ageMs: number): number {
    const { sweepAfterMs, maxBackoffMs } = this.#limits;
    return Math.min(Math.max(ageMs / 2, sweepAfterMs), Math.max(sweepAfterMs, maxBackoffMs));
  }

  /**
   * Returns the earliest time at which an execution can be due: when it gets old enough, or when its pause
   * ends.
   */
  #nextDueMs(executions: readonly Execution[], now: number): number {
    let next = now + this.#limits.maxBackoffMs;
    for (const hold of executions)
      next = Math.min(
        next,
        this.#pauses.get(executionKey(hold)) ?? hold.heldAtMs + this.#limits.sweepAfterMs,
      );
    return next;
  }
}
