import { DatabaseSync, type SQLInputValue, type StatementSync } from "node:sqlite";
import { readdirSync, readFileSync } from "node:fs";
import { limitVariable, type LimitName } from "../../src/core/limits.ts";
import type { LeaseState } from "../../src/core/messages.ts";
import type { Coordinator } from "./coordinator.ts";
import type { Faults } from "./faults.ts";
import type { Network } from "./network.ts";
import type { Part } from "./part.ts";
import type { Owner, Scheduler } from "./scheduler.ts";
import type { Weather } from "./weather.ts";

// Checked with the types of the platform, which this side of the tests does not have.
const CRON = "../../src/projections/cron.ts";

interface Around {
  clock: { now: () => number; after: (delayMs: number, then: () => void) => () => void };
  uuid: () => string;
  log: (event: string) => void;
}

type RunCron = (env: unknown, scheduledAtMs: number, around: Around) => Promise<unknown>;

/** One statement with its values, as D1 hands it out. */
class Statement {
  readonly #record: FleetRecord;
  readonly #sql: string;
  readonly #values: readonly SQLInputValue[];

  constructor(record: FleetRecord, sql: string, values: readonly SQLInputValue[] = []) {
    this.#record = record;
    this.#sql = sql;
    this.#values = values;
  }

  bind(...values: SQLInputValue[]): Statement {
    return new Statement(this.#record, this.#sql, values);
  }

  run(): Promise<unknown> {
    return this.#record.carryOut(() => this.execute());
  }

  all(): Promise<unknown> {
    return this.run();
  }

  raw(): Promise<unknown> {
    return this.#record.carryOut(() => this.#record.statement(this.#sql, true).all(...this.#values));
  }

  execute(): { results: unknown[]; success: true; meta: { changes: number } } {
    const before = this.#record.changes();
    const results = this.#record.statement(this.#sql, false).all(...this.#values);
    return { results, success: true, meta: { changes: this.#record.changes() - before } };
  }
}

/** D1 as far as the cron uses it: real SQLite, whose every access takes time and may fail before or after it was carried out. */
export class FleetRecord {
  readonly #database = new DatabaseSync(":memory:");
  readonly #prepared = new Map<string, StatementSync>();
  readonly #scheduler: Scheduler;
  readonly #faults: Faults;
  #downUntilMs = 0;

  constructor(scheduler: Scheduler, faults: Faults) {
    this.#scheduler = scheduler;
    this.#faults = faults;
    const folder = new URL("../../migrations/", import.meta.url);
    for (const name of readdirSync(folder).filter((file) => file.endsWith(".sql")))
      this.#database.exec(readFileSync(new URL(name, folder), "utf8").replaceAll("--> statement-breakpoint", ""));
  }

  prepare(sql: string): Statement {
    return new Statement(this, sql);
  }

  batch(statements: readonly Statement[]): Promise<unknown> {
    return this.carryOut(() => {
      this.#database.exec("BEGIN");
      try {
        const results = statements.map((statement) => statement.execute());
        this.#database.exec("COMMIT");
        return results;
      } catch (error) {
        this.#database.exec("ROLLBACK");
        throw error;
      }
    });
  }

  leases(): { cell_id: string; uuid: string; state: LeaseState; position: number }[] {
    return this.#database.prepare("SELECT cell_id, uuid, state, position FROM leases").all() as never;
  }

  has(cell: string, lease: string, state: LeaseState): boolean {
    const sql = "SELECT 1 FROM leases WHERE cell_id = ? AND uuid = ? AND state = ?";
    return this.statement(sql, false).all(cell, lease, state).length > 0;
  }

  statement(sql: string, isRaw: boolean): StatementSync {
    const key = `${isRaw} ${sql}`;
    let statement = this.#prepared.get(key);
    if (statement === undefined) {
      statement = this.#database.prepare(sql);
      statement.setReturnArrays(isRaw);
      this.#prepared.set(key, statement);
    }
    return statement;
  }

  changes(): number {
    return Number(this.statement("SELECT total_changes() AS n", false).get()?.["n"]);
  }

  carryOut(work: () => unknown): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const later = (then: () => void): void => void this.#scheduler.after(this.#faults.diskMs("record"), undefined, then);
      const fail = (): void => later(() => reject(new Error("D1_ERROR: Network connection lost.")));
      if (this.#faults.calm) this.#downUntilMs = 0;
      if (this.#scheduler.nowMs < this.#downUntilMs) return fail();
      switch (this.#faults.record()) {
        case "record_down":
          this.#downUntilMs = this.#scheduler.nowMs + this.#faults.stream("record down").exponential(60_000);
          return fail();
        case "record_failed":
          return fail();
        case "record_failed_after":
          return later(() => (work(), fail()));
        case "record_stalled":
          return later(work);
        case undefined:
          return later(() => {
            try {
              resolve(work());
            } catch (error) {
              reject(error instanceof Error ? error : new Error(String(error)));
            }
          });
      }
    });
  }
}

/** The production cron, as the platform fires it: now and then twice, and never twice the same. */
export class Cron {
  readonly record: FleetRecord;
  readonly #owner: Owner = { name: "cron", dead: false };
  readonly #env: Record<string, unknown>;
  readonly #around: Around;
  readonly #run: Promise<RunCron>;

  constructor(weather: Weather, scheduler: Scheduler, faults: Faults, network: Network, coordinator: Coordinator, see: (event: string) => void) {
    this.record = new FleetRecord(scheduler, faults);
    const partOf = (name: string): Part<object> => {
      const [kind, number = ""] = name.split("-");
      if (kind === "cell") return coordinator.ledger(number);
      return kind === "shard" ? coordinator.shard(Number(number)) : coordinator.directory;
    };
    const stub = (name: string): object =>
      new Proxy({}, { get: (_, method) => (message: object) => network.send(this.#owner, partOf(name), String(method), message) });
    const objects = { getByName: stub };
    const limits = Object.entries(weather.limits).map(([name, value]) => [limitVariable(name as LimitName), String(value)]);
    this.#env = {
      CELL_LEDGER: objects,
      CLAIM_SHARD: objects,
      DIRECTORY: objects,
      DB: this.record,
      LEASEHOLD_SHARDS: String(weather.shards),
      ...Object.fromEntries(limits),
    };
    const random = faults.stream("cron");
    this.#around = {
      clock: { now: () => Math.floor(scheduler.nowMs), after: (delayMs, then) => scheduler.after(delayMs, this.#owner, then) },
      uuid: () => random.uuid(),
      log: (event) => see(`log ${event}`),
    };
    this.#run = (import(CRON) as Promise<{ runCron: RunCron }>).then(({ runCron }) => runCron);
  }

  /** Imports are not virtual: before the first event they are done. */
  async load(): Promise<void> {
    await this.#run;
  }

  async run(): Promise<void> {
    const run = await this.#run;
    await run(this.#env, this.#around.clock.now(), this.#around);
  }
}
