import { DatabaseSync, type SQLInputValue, type StatementSync } from "node:sqlite";
import { readdirSync, readFileSync } from "node:fs";
import type { AuditAction } from "../../../src/coordinator/capabilities/audit/audit.ts";
import type { Cell } from "../../../src/coordinator/kernel/directory/messages.ts";
import type { MintedKey } from "../../../src/coordinator/capabilities/keys/messages.ts";
import type { TypeSet } from "../../../src/coordinator/capabilities/types/messages.ts";
import type { Growth, GrowthProgress } from "../../../src/coordinator/capabilities/growth/messages.ts";
import { limitVariable, type LimitName, type Limits } from "../../../src/common/limits.ts";
import type { Envelope, HistoryPoint } from "../../../src/coordinator/kernel/messages.ts";
import type { Placement } from "../../../src/coordinator/kernel/placement.ts";
import { ok, refused, type Result } from "../../../src/coordinator/kernel/refusal.ts";
import type { Operation, OperationSet } from "../../../src/coordinator/capabilities/operations/operations.ts";
import type { TypeEntry } from "../../../src/common/types/types.ts";
import type { Coordinator } from "./coordinator.ts";
import type { Faults } from "./faults.ts";
import type { Network } from "./network.ts";
import type { Part } from "./part.ts";
import type { Owner, Scheduler } from "./scheduler.ts";
import type { SimulationSettings } from "./simulation-settings.ts";

interface CronContext {
  clock: { now: () => number; after: (delayMs: number, then: () => void) => () => void };
  uuid: () => string;
  log: (event: string) => void;
  speaks?: number;
}

interface CronReport {
  error: string | null;
}

type RunCron = (env: unknown, scheduledAtMs: number, context: CronContext) => Promise<CronReport>;

type Calls = Record<string, (message: object) => Promise<Result<Growth>>>;

/** What production code about growing needs. */
export interface SimulatedDriver {
  readonly envelope: Envelope;
  objects: { directory: () => Calls; shard: (index: number) => Calls };
  database: object;
  limits: Limits;
  clock: CronContext["clock"];
}

interface GrowthState {
  shards: { progress: GrowthProgress | null }[];
}

/** The production code about growing. Its modules use the platform's types. */
export interface GrowthModules {
  readGrowth: (driver: SimulatedDriver) => Promise<Result<Growth | null>>;
  readProgress: (driver: SimulatedDriver, growth: Growth) => Promise<GrowthState>;
  stepGrowth: (
    driver: SimulatedDriver,
    growth: Growth,
    untilMs: number,
    rows: number,
  ) => Promise<Result<object | null>>;
  /** What the routes do before a growth is started, and around its abort. */
  dropAborted: (driver: SimulatedDriver) => Promise<Result<unknown>>;
  mirrorGrowth: (database: object, growth: Growth) => Promise<Result<number>>;
  dropCopies: (driver: SimulatedDriver, growth: Growth) => Promise<Result<unknown>>;
  completeCut: (driver: SimulatedDriver, growth: Growth) => Promise<Result<Growth>>;
  isReadyToCut: (state: object) => boolean;
  readSeen: (database: object) => Promise<Result<{ growthPosition: number }>>;
  configOf: (env: object) => { initialShards: number; limits: Limits };
  objectsOf: (env: object, config: object, interceptors: readonly object[]) => SimulatedDriver["objects"];
  KnownPlacement: new (shards: number) => { current: Placement };
  KnownFormat: new (speaks?: number) => object;
  Database: new (env: object, options: object, runtime: object) => object;
}

/** One prepared statement with its values, in the interface of D1. */
class Statement {
  readonly #record: SimulatedProjection;
  readonly #sql: string;
  readonly #values: readonly SQLInputValue[];

  constructor(record: SimulatedProjection, sql: string, values: readonly SQLInputValue[] = []) {
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

export interface OpenLeaseRow {
  cell_id: string;
  created_position: number;
  uuid: string;
  created_at_ms: number;
  creates: number;
  destroys: number;
  replaces: number;
  missing: number;
}

/**
 * The part of D1 that the cron uses, over SQLite. Every access takes time and may fail before or after it was
 * carried out.
 */
export class SimulatedProjection {
  readonly #database = new DatabaseSync(":memory:");
  readonly #prepared = new Map<string, StatementSync>();
  readonly #scheduler: Scheduler;
  readonly #faults: Faults;
  #downUntilMs = 0;
  /** True: every access fails, even without faults. */
  isDown = false;

  constructor(scheduler: Scheduler, faults: Faults) {
    this.#scheduler = scheduler;
    this.#faults = faults;
    const folder = new URL("../../../migrations/", import.meta.url);
    for (const name of readdirSync(folder).filter((file) => file.endsWith(".sql")))
      this.#database.exec(
        readFileSync(new URL(name, folder), "utf8").replaceAll("--> statement-breakpoint", ""),
      );
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

  openLeases(): OpenLeaseRow[] {
    return this.statement("SELECT * FROM open_leases", false).all() as never;
  }

  /** The cells whose ledgers were pulled to their end since this time. */
  cellsPulledSince(ms: number): Set<string> {
    const sql = "SELECT cell_id AS cell FROM cells WHERE last_pulled_at_ms >= ?";
    const rows = this.statement(sql, false).all(ms) as { cell: string }[];
    return new Set(rows.map(({ cell }) => cell));
  }

  /** The keys, as a reconciliation of the directory reads them. */
  keys(): MintedKey[] {
    const sql = `SELECT key_id AS keyId, role, cell_id AS cell, note, created_at_ms AS createdAtMs,
      expires_at_ms AS expiresAtMs, revoked_at_ms AS revokedAtMs FROM keys`;
    return this.statement(sql, false).all() as never;
  }

  /** The cells, as a reconciliation of the directory reads them, and whether they are still copied. */
  cells(): (Cell & { closedAtMs: number | null })[] {
    const sql = `SELECT cell_id AS cell, name, address, location_hint AS locationHint,
      created_at_ms AS createdAtMs, updated_at_ms AS updatedAtMs, removed_at_ms AS removedAtMs,
      closed_at_ms AS closedAtMs FROM cells`;
    return this.statement(sql, false).all() as never;
  }

  /** The audit entries about an action. */
  auditOf(action: AuditAction): { part: string; target: string }[] {
    return this.statement("SELECT part, target FROM audit WHERE action = ?", false).all(action) as never;
  }

  /** The set of types, as a reconciliation of the directory reads it. */
  types(): TypeSet | null {
    const rows = this.statement("SELECT position, entries FROM type_sets", false).all();
    const [row] = rows as { position: number; entries: string }[];
    return row === undefined ? null : { ...row, entries: JSON.parse(row.entries) as TypeEntry[] };
  }

  /** Saves a set unless there is a newer one, and returns the position of the one that is there. */
  async saveTypes({ position, entries }: TypeSet): Promise<Result<number>> {
    const sql = `INSERT INTO type_sets (part, position, entries) VALUES ('directory', ?1, ?2)
      ON CONFLICT (part) DO UPDATE SET position = ?1, entries = ?2 WHERE position < ?1`;
    try {
      return ok(
        (await this.carryOut(() => {
          if (position > 0) this.statement(sql, false).run(position, JSON.stringify(entries));
          return this.types()?.position ?? 0;
        })) as number,
      );
    } catch (error) {
      return refused("UNAVAILABLE", String(error));
    }
  }

  /** The operations, as a reconciliation of the directory reads them. */
  operations(): OperationSet | null {
    const rows = this.statement("SELECT position, operations FROM operation_sets", false).all();
    const [row] = rows as { position: number; operations: string }[];
    return row === undefined ? null : { ...row, operations: JSON.parse(row.operations) as Operation[] };
  }

  /** The growth that D1 has a copy of. */
  growth(): Growth | null {
    const rows = this.statement("SELECT growth FROM growths", false).all() as { growth: string }[];
    const [row] = rows;
    return row === undefined ? null : (JSON.parse(row.growth) as Growth);
  }

  /** The newest point of the directory that the cron has seen. */
  directoryPoint(): HistoryPoint | undefined {
    const sql = "SELECT incarnation, position FROM seen_points WHERE part = 'directory'";
    return this.statement(sql, false).get() as HistoryPoint | undefined;
  }

  /** Forgets what the cron has seen of other parts, and the types, as an empty D1 would. */
  forgetPoints(): void {
    this.statement("DELETE FROM seen_points", false).run();
    this.statement("DELETE FROM type_sets", false).run();
  }

  /** Forgets what the cron has seen of ledgers, as a D1 from an old backup would. */
  forgetLedgers(): void {
    this.statement("UPDATE cells SET seen = NULL", false).run();
  }

  /** Whether the projection has an audit entry. */
  hasAudit(id: string): boolean {
    return this.statement("SELECT 1 FROM audit WHERE id = ?", false).all(id).length > 0;
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
      const later = (then: () => void): void =>
        void this.#scheduler.after(this.#faults.recordMs(), undefined, then);
      const fail = (): void => later(() => reject(new Error("D1_ERROR: Network connection lost.")));
      if (this.#faults.areOff) this.#downUntilMs = 0;
      if (this.isDown || this.#scheduler.nowMs < this.#downUntilMs) return fail();
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

/** Runs the production cron, as the platform does. */
export class Cron {
  readonly name = "the cron";
  readonly record: SimulatedProjection;
  /** The newest format that its code speaks. Undefined in a run of one version. */
  speaks: number | undefined;
  readonly #owner: Owner = { name: "cron", dead: false };
  readonly #env: Record<string, unknown>;
  readonly #context: CronContext;
  readonly #run: Promise<RunCron>;
  readonly #growth: Promise<GrowthModules>;

  constructor(
    settings: SimulationSettings,
    scheduler: Scheduler,
    faults: Faults,
    network: Network,
    coordinator: Coordinator,
    see: (event: string) => void,
  ) {
    this.record = new SimulatedProjection(scheduler, faults);
    this.speaks = coordinator.speaks;
    const partOf = (name: string): Part<object> => {
      const [kind, number = ""] = name.split("-");
      if (kind === "cell") return coordinator.ledger(number);
      return kind === "shard" ? coordinator.shard(Number(number)) : coordinator.directory;
    };
    const stub = (name: string): object =>
      new Proxy(
        {},
        {
          get: (_, method) => (message: object) =>
            network.send(this.#owner, partOf(name), String(method), message),
        },
      );
    const objects = { getByName: stub };
    const limits = Object.entries(settings.limits).map(([name, value]) => [
      limitVariable(name as LimitName),
      String(value),
    ]);
    this.#env = {
      CELL_LEDGER: objects,
      CLAIM_SHARD: objects,
      DIRECTORY: objects,
      DB: this.record,
      LEASEHOLD_SHARDS: String(settings.shards),
      ...Object.fromEntries(limits),
    };
    const random = faults.stream("cron");
    this.#context = {
      clock: {
        now: () => Math.floor(scheduler.nowMs),
        after: (delayMs, then) => scheduler.after(delayMs, this.#owner, then),
      },
      uuid: () => random.uuid(),
      log: (event) => see(`log ${event}`),
    };
    // A string, because the module uses the platform's types, which this TypeScript project does not have.
    // oxlint-disable-next-line typescript/no-unnecessary-type-assertion
    const imported = import("../../../src/coordinator/cron/cron.ts" as string) as Promise<{
      runCron: RunCron;
    }>;
    this.#run = imported.then(({ runCron }) => runCron);
    this.#growth = this.#importGrowth();
  }

  async #importGrowth(): Promise<GrowthModules> {
    // Strings, as for the cron.
    /* oxlint-disable typescript/no-unnecessary-type-assertion */
    const modules = await Promise.all([
      import("../../../src/coordinator/capabilities/growth/edge/cron.ts" as string),
      import("../../../src/coordinator/d1/directory-copies.ts" as string),
      import("../../../src/coordinator/capabilities/projection/edge/mirror.ts" as string),
      import("../../../src/coordinator/d1/database.ts" as string),
      import("../../../src/coordinator/isolate/known-placement.ts" as string),
      import("../../../src/coordinator/isolate/known-placement.ts" as string),
      import("../../../src/coordinator/objects/objects.ts" as string),
      import("../../../src/coordinator/env.ts" as string),
    ]);
    /* oxlint-enable typescript/no-unnecessary-type-assertion */
    return Object.assign({}, ...(modules as object[])) as GrowthModules;
  }

  /** What an operator's request about a growth works with, as the Worker makes it. */
  async growthDriver(): Promise<{ modules: GrowthModules; driver: SimulatedDriver }> {
    const modules = await this.#growth;
    const config = modules.configOf(this.#env);
    const placement = new modules.KnownPlacement(config.initialShards);
    const { clock } = this.#context;
    const runtime = { clock, log: this.#context.log };
    const driver = {
      get envelope() {
        return { placement: placement.current };
      },
      objects: modules.objectsOf(this.#env, config, [new modules.KnownFormat(this.speaks), placement]),
      database: new modules.Database(this.#env, {}, runtime),
      limits: config.limits,
      clock,
    };
    return { modules, driver };
  }

  /** Waits for the import, which takes real time, before the first event. */
  async load(): Promise<void> {
    await Promise.all([this.#run, this.#growth]);
  }

  /** A deployment: the next run has other code. */
  deploy(speaks: number): void {
    this.speaks = speaks;
  }

  async run(): Promise<CronReport> {
    const run = await this.#run;
    const context = this.speaks === undefined ? this.#context : { ...this.#context, speaks: this.speaks };
    return run(this.#env, this.#context.clock.now(), context);
  }
}
