import type { Limits } from "../limits.ts";
import type { Ports } from "../ports.ts";
import { executionKey, type Inquirer } from "./inquirer.ts";
import { AlarmSchedule } from "../alarm-schedule.ts";
import type { ShardStore } from "./store.ts";

type Execution = ReturnType<ShardStore["executions"]>[number];

/** Executions that one run asks about; the rest wait for the next. */
const EXECUTIONS_PER_ALARM = 500;

/**
 * Asks about holds that have been there for long, so that none stays when its lease is over and nobody collides with it (rule B8). A hold
 * of a granted lease may stay for days: the older it is, the longer the pause between two questions about it. When each was last asked is in
 * memory only; a new instance asks once more.
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

  /** Before an instance answers its first message: its predecessor may have left holds, and the platform may have lost its alarm. */
  async start(): Promise<void> {
    await this.#alarm.load();
    this.arm();
  }

  /** Sees to it that holds are asked about in time (rule M3): at the start, after each run and when holds are made. */
  arm(): void {
    if (this.#store.hasHolds()) this.#alarm.setBy(this.#ports.clock.now() + this.#limits.sweepAfterMs);
  }

  async run(): Promise<void> {
    this.#alarm.markRung();
    // Read once, for it is a scan: whoever holds something from now on arms the alarm by itself.
    const maxExecutions = EXECUTIONS_PER_ALARM + this.#pauses.size;
    const executions = this.#store.executions(maxExecutions);
    try {
      await this.#sweep(executions);
    } finally {
      const now = this.#ports.clock.now();
      if (this.#store.hasHolds()) {
        // Behind those that were read, others may be due.
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

  /** The earliest moment at which something can be due: a young hold, or the end of a pause. */
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
