import type { SourceRow } from "../../../src/users/cell/changes.ts";
import { NotSavedError } from "../../../src/users/cell/errors.ts";
import { LeasedTransaction } from "../../../src/users/cell/leased-transaction.ts";
import type { ReconcileOptions } from "../../../src/users/cell/reconcile.ts";
import type { VerifyOptions } from "../../../src/users/cell/verification/options.ts";
import { rowKey } from "../../../src/users/cell/verification/ports.ts";
import type { VerificationReport } from "../../../src/users/cell/verification/report.ts";
import { isLeaseholdError } from "../../../src/users/client/errors.ts";
import type { Caller, Op, Outcome } from "../../../src/coordinator/kernel/messages.ts";
import { opsOf as placedOps, type Batch as ApiBatch } from "../../../src/coordinator/api/batch.ts";
import { shipped } from "../../support/types.ts";
import { Api, type Batch, type SimulationContext } from "./api.ts";
import { CellLeases } from "./cell-leases.ts";
import type { Faults } from "./faults.ts";
import { bucketTypeName, LocalDatabase, LocalFailure, nameKey, type LocalRow, type Name } from "./local.ts";
import type { Random } from "./random.ts";
import { Reconciler } from "./reconciler.ts";
import { RowLocks } from "./row-locks.ts";
import type { Owner } from "./scheduler.ts";
import { StoredHistory } from "./stored-history.ts";
import { Verifier } from "./verifier.ts";
import { Violation } from "./violation.ts";
import type { CellCrash, SimulationSettings } from "./simulation-settings.ts";

/** A lease whose outcome this cell knows. */
export interface Ended extends Batch {
  outcome: Outcome;
  endedAtMs: number;
}

/** How far a cell's clock may be off. */
export const MAX_CLOCK_SKEW_MS = 900_000;

/** Longer than a transaction waits before it saves its lease, whatever the clock does meanwhile (L5). */
export const FENCE_MS = 2 * MAX_CLOCK_SKEW_MS + 120_000;

const REMEMBERED = 20;
const RECENT_MS = 100_000;

/** One update that a user of a cell asks for. */
export interface UpdateRequest {
  creates: LocalRow[];
  destroys: LocalRow[];
  /** The new rows. */
  replaces: LocalRow[];
  allowMissing: boolean;
  /** The user cancels after the begin. */
  isAbandoned: boolean;
}

/** The user cancelled the update. */
class Abandoned extends Error {}

/** What ends with a cell's process: its calls, and its local transactions with their locks. */
export interface Process extends Owner {
  api: Api;
  /** Names that a local transaction of this process is changing. */
  locked: Set<string>;
  rowLocks: RowLocks;
}

/**
 * A cell: a database that survives crashes, and a process that may die at any point of its flow. The process
 * begins a lease inside its local transaction, commits the rows together with the outstanding lease, and then
 * commits the lease. Reconciliation decides the leases that were interrupted.
 */
export class Cell {
  readonly id: string;
  readonly local: LocalDatabase;
  readonly storedHistory = new StoredHistory();
  readonly ended: Ended[] = [];
  clockSkewMs = 0;
  keyNumber = 1;
  rows = 0;
  #process: Process;
  readonly #context: SimulationContext;
  readonly #faults: Faults;
  readonly #settings: SimulationSettings;
  readonly #random: Random;

  constructor(id: string, context: SimulationContext, faults: Faults, settings: SimulationSettings) {
    this.id = id;
    this.#context = context;
    this.#faults = faults;
    this.#settings = settings;
    this.#random = faults.stream(`cell ${id}`);
    this.local = new LocalDatabase(
      () => faults.local(id),
      () => this.nowMs,
    );
    this.local.onChange = (change) => context.judge.saved(id, change);
    this.local.onDrift = (change) => context.judge.drifted(id, change);
    this.#process = this.#start();
  }

  get isUp(): boolean {
    return !this.#process.dead;
  }

  get api(): Api {
    return this.#process.api;
  }

  get caller(): Caller {
    return this.#callerWith(this.keyNumber);
  }

  /** The callers with the keys that were rotated. */
  get callersSoFar(): Caller[] {
    return Array.from({ length: this.keyNumber - 1 }, (_, index) => this.#callerWith(index + 1));
  }

  /** A later key expires later. No clock reaches these times. */
  #callerWith(keyNumber: number): Caller {
    const keyId = `cell-${this.id}-key-${keyNumber}`;
    return { role: "cell", keyId, expiresAtMs: 2_000_000_000_000 + keyNumber };
  }

  get nowMs(): number {
    return Math.floor(this.#context.scheduler.nowMs + this.clockSkewMs);
  }

  /** Whether a local transaction is changing the name. */
  isLocked(name: Name): boolean {
    return this.#process.locked.has(nameKey(name));
  }

  /** Whether a verification has locked the row. */
  isRowLocked(row: SourceRow): boolean {
    return this.#process.rowLocks.isLocked(rowKey(row));
  }

  crash(): void {
    this.#process.dead = true;
  }

  restart(): void {
    if (!this.#process.dead) return;
    this.#process = this.#start();
  }

  /** The process may die here. Then it never does its next step. */
  async #mayDie(process: Process, where: CellCrash): Promise<void> {
    if (!process.dead && this.#faults.cell(this.id, where)) {
      this.crash();
      const restart = (): void => this.restart();
      this.#context.scheduler.after(this.#random.exponential(5_000), undefined, restart);
    }
    await process.api.sleep(this.#random.exponential(this.#settings.cellMs));
  }

  /** Runs one update from the user's request to the answer. */
  async update(request: UpdateRequest): Promise<void> {
    const process = this.#process;
    await this.#locking(process, [...request.creates, ...request.destroys, ...request.replaces], () =>
      this.#update(process, request),
    );
  }

  /** Changes rows or claims so that they differ. */
  async plantDrift(names: readonly Name[], work: (api: Api) => Promise<void>): Promise<void> {
    const process = this.#process;
    await this.#locking(process, names, () => work(process.api));
  }

  async #locking(process: Process, names: readonly Name[], work: () => Promise<void>): Promise<void> {
    for (const name of names) process.locked.add(nameKey(name));
    await work();
    for (const name of names) process.locked.delete(nameKey(name));
  }

  /** Runs the production code over this cell's database and the simulated network. */
  async #update(process: Process, request: UpdateRequest): Promise<void> {
    const lease = this.#random.uuid();
    const { puts, removes } = { puts: [...request.creates, ...request.replaces], removes: request.destroys };
    await this.#mayDie(process, "before_begin");
    const rows = this.local.rowsOf({ puts, removes });
    // The simulated network carries the core's ops, so the batch in the format of the API is not used.
    const opsOf = (): Op[] => this.opsOf(request);
    const locks = { mode: "shared", rows: () => rows } as const;
    const abandon = request.isAbandoned ? new Abandoned() : undefined;
    const work = {
      lease,
      opsOf,
      allowMissing: request.allowMissing,
      change: { puts, removes },
      locks,
      abandon,
    };
    const claimed = { batch: {}, sources: rows };
    try {
      await new LeasedTransaction(this.#leases(process).portsFor(work), lease).inTransaction(
        async () => ({ value: undefined, claimed }),
        {},
      );
    } catch (error) {
      if (!isLeaseholdError(error) && !(error instanceof LocalFailure) && !(error instanceof Abandoned))
        throw error;
      if (error instanceof NotSavedError)
        throw new Violation("I5", `cell ${this.id} lost the rows that it saved with lease ${lease}`);
    }
  }

  #leases(process: Process): CellLeases {
    const mayDie = (where: CellCrash): Promise<void> => this.#mayDie(process, where);
    return new CellLeases({ cell: this, process, context: this.#context, random: this.#random, mayDie });
  }

  /** Leases whose UUIDs may be reused. Older leases may be forgotten, and then their UUIDs are free. */
  get recent(): Ended[] {
    return this.ended.filter(({ endedAtMs }) => this.#context.scheduler.nowMs - endedAtMs < RECENT_MS);
  }

  remember(ended: Ended): void {
    this.ended.push(ended);
    if (this.ended.length > REMEMBERED) this.ended.shift();
  }

  opsOf({ creates, destroys, replaces }: Pick<UpdateRequest, "creates" | "destroys" | "replaces">): Op[] {
    const full = ({ type, value, subject, source }: LocalRow): object => ({
      bucket: { type: bucketTypeName(type), value },
      subject,
      source,
    });
    return this.placed({
      creates: creates.map(full),
      destroys: destroys.map(full),
      replaces: replaces.map(full),
    });
  }

  /** Turns a batch into ops, as the Worker does. */
  placed(batch: object): Op[] {
    const { isolate, coordinator } = this.#context;
    // oxlint-disable-next-line typescript/no-unnecessary-type-assertion -- it is read like parsed JSON
    const result = placedOps(batch as ApiBatch, shipped, isolate.shards, coordinator.limits);
    if (!result.ok) throw new Violation("B1", `a valid batch is refused: ${result.refusal.detail}`);
    return result.value;
  }

  /** Reconciles, as a cell does every minute. */
  async reconcile(options: Partial<ReconcileOptions>): Promise<void> {
    const process = this.#process;
    const { judge } = this.#context;
    await new Reconciler({
      cell: this,
      api: process.api,
      judge,
      mayDie: (where) => this.#mayDie(process, where),
    }).run(options);
  }

  /** Verifies, as a cell does a few times a day. */
  async verify(options: VerifyOptions): Promise<VerificationReport | undefined> {
    const process = this.#process;
    const mayDie = (where: CellCrash): Promise<void> => this.#mayDie(process, where);
    const context = {
      cell: this,
      process,
      api: process.api,
      context: this.#context,
      leases: this.#leases(process),
      random: this.#random,
      mayDie,
    };
    return new Verifier(context).run(options);
  }

  #start(): Process {
    const owner = { name: `cell ${this.id}`, dead: false };
    return Object.assign(owner, {
      api: new Api(this.#context, owner, this.storedHistory),
      locked: new Set<string>(),
      rowLocks: new RowLocks(),
    });
  }
}
