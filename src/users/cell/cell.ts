import { v7 as uuidv7 } from "uuid";
import type { Client } from "../client/client.ts";
import { isLeaseholdError, type LeaseholdError } from "../client/errors.ts";
import { callHook } from "../client/hooks.ts";
import type { Batch, Transfer } from "../client/api-types.ts";
import type { CallOptions } from "../client/connection.ts";
import { defaultLimits } from "../../common/limits.ts";
import type { TypesDocument } from "../../common/types/document.ts";
import { CallSite, invalidArgument, NotInstalledError, reasonOf, rememberFields } from "./errors.ts";
import { BackgroundWork } from "./background-work.ts";
import { beginAdjusting, LeasedTransaction, type LeaseCalls, type LeaseEvent } from "./leased-transaction.ts";
import {
  deleteInChunks,
  insertInChunks,
  type BulkInsertOptions,
  type BulkOptions,
  type BulkPorts,
  type BulkProgress,
} from "./bulk-changes.ts";
import type { Changes, ClaimBatch, SourceRow } from "./changes.ts";
import { chunkDefaults, type ChunkLimits } from "./chunks.ts";
import { ClaimTransaction, type TransactionOptions } from "./claim-transaction.ts";
import { scalarText, type Claimable } from "./claimable.ts";
import { TypesCheck, typesToSend } from "./declared-types.ts";
import { DeferredLeases, noDeferred, type DeferredCounters } from "./deferred.ts";
import type { CellDatabase, Deferred } from "./local.ts";
import { fieldsOfDuplicate, namingFields, toValidationErrors } from "./validation.ts";
import { PlannedWrites } from "./planned-writes.ts";
import { reconcile, type Finding, type ReconcileOptions, type ReconcileResult } from "./reconcile.ts";
import { ReconcileLoop, type ReconcileLoopOptions } from "./reconcile-loop.ts";
import { ClientLeases, rollBackPatiently } from "./remote-leases.ts";
import { digestScope, type ScopeDigest } from "./verification/row-names.ts";
import { SavedHistory } from "./saved-history.ts";
import { StatusReporter } from "./status-reporter.ts";
import type { AnyRow, AnyTable, NewRow, Where } from "./table.ts";
import { ClaimableTables } from "./tables.ts";
import { createPorts } from "./verification/cell-ports.ts";
import { VerificationLoop, verify, type VerificationLoopOptions } from "./verification/loop.ts";
import type { VerifyOptions } from "./verification/options.ts";
import type { VerificationPorts } from "./verification/ports.ts";
import type { VerificationReport } from "./verification/report.ts";

export interface CellOptions<Tx> {
  /** With the cell's id and key. */
  client: Client;
  /** `postgres(db)` or `mysql(db)`. */
  database: CellDatabase<Tx>;
  tables: readonly Claimable[];
  /**
   * The contents of `leasehold.types.json`, if the deployment has declared its own types. Left out: the types
   * that Leasehold ships.
   */
  types?: TypesDocument;
  /**
   * The SDK doesn't see rows that foreign keys delete, or whose names, subjects or scopes they change, so the
   * claims stay as they were. `"refuse"`, the default, throws if the drizzle schema declares such a key.
   * Without a schema, the first call throws if the database has one. `"accept"` promises that no code relies
   * on them, because children are deleted or updated with `tx` before their parents.
   */
  cascades?: "refuse" | "accept";
  /**
   * Deadline of a begin inside a local transaction, with retries: 250 ms by default, because locks are held.
   */
  beginDeadlineMs?: number;
  /** Deadline of a begin before a local transaction, and of bulk changes: 5 s by default. */
  preflightDeadlineMs?: number;
  /**
   * Deadline of a commit or rollback that a caller waits for: 2 s by default. Afterwards reconciliation
   * decides.
   */
  decideDeadlineMs?: number;
  /** Limits of a chunk in bulk changes. */
  chunk?: Partial<ChunkLimits>;
  /**
   * Called for events that no call can report, such as a commit left to reconciliation. Alarm on a
   * contradiction.
   */
  onEvent?: (event: CellEvent) => void;
}

export type CellEvent =
  | LeaseEvent
  | { kind: "release_postponed"; uuid: string; error: string }
  /**
   * A call failed with `TRANSACTION_ENDED`. These rows were changed in it, and may be saved although their
   * claims are not changed. Verification repairs them.
   */
  | { kind: "transaction_ended"; sources: readonly SourceRow[]; error: string }
  /**
   * The coordinator refused a begin for a reason that no user can correct: a type or a field that it doesn't
   * know, the key, a batch that is too large. The call throws the same error.
   */
  | { kind: "begin_refused"; uuid: string; code: string; field: string | undefined; error: string }
  /**
   * The cell's declared types are not those of its deployment, so that the coordinator may refuse its begins,
   * or compare names by another rule. Each difference is a sentence.
   */
  | { kind: "types_differ"; differences: readonly string[] }
  /** What the cell has seen of its ledger was not stored. The cell tries again, also if it is idle. */
  | { kind: "history_not_saved"; error: string }
  | { kind: "reconcile_finding"; finding: Finding };

export interface PreflightOptions extends TransactionOptions {
  /**
   * How long the begin may wait for names that are leased, instead of failing at once with
   * `ClaimLeasedError`: not at all by default, and at most the coordinator's limit, 30 s by default. It comes
   * on top of `preflightDeadlineMs`. `transaction` has no such option, because its begin keeps the locks of
   * the local transaction.
   */
  waitMs?: number | undefined;
}

/** What is known about a local transaction when it fails. */
interface TransactionState<Tx> {
  uuid: string;
  claimed: ClaimBatch | undefined;
  tx: ClaimTransaction<Tx> | undefined;
  leased: LeasedTransaction<Tx>;
}

/** The cell's side of the protocol: local transactions that claim names, and recovery of interrupted ones. */
export class Cell<Tx> {
  readonly #options: CellOptions<Tx>;
  readonly #tables: ClaimableTables;
  readonly #leases: ClientLeases;
  readonly #history: SavedHistory;
  readonly #background = new BackgroundWork();
  readonly #typesCheck: TypesCheck;
  #isChecked = false;

  constructor(options: CellOptions<Tx>) {
    const { client, database } = options;
    if (client.cell === undefined)
      throw invalidArgument("client", "must have a cell: pass `cell` to createClient");
    const { beginDeadlineMs, preflightDeadlineMs, decideDeadlineMs } = options;
    for (const [field, ms] of Object.entries({ beginDeadlineMs, preflightDeadlineMs, decideDeadlineMs }))
      if (ms !== undefined && !(ms > 0)) throw invalidArgument(field, "must be above 0");
    this.#options = options;
    this.#tables = new ClaimableTables(options.tables, options.types);
    this.#refuse(options.database.cascades(options.tables));
    this.#leases = new ClientLeases(client);
    const own = typesToSend(this.#tables.types, options.types !== undefined, options.tables);
    this.#typesCheck = new TypesCheck(
      own,
      () => client.types.list({ deadlineMs: this.#decideDeadlineMs }),
      (differences) => this.#callHook({ kind: "types_differ", differences }),
    );
    this.#history = new SavedHistory(
      database.ledgerHistory,
      client.cell,
      client.history,
      (work) => this.#background.start(work),
      (error) => this.#callHook({ kind: "history_not_saved", error }),
    );
  }

  /** Creates the cell's own tables if they are missing. You can also do this in a migration. */
  install(): Promise<void> {
    return this.#options.database.install();
  }

  /**
   * Finishes what no caller waits for: rollbacks of leases whose begin got no answer, and storing what the
   * cell has seen of its ledger, which otherwise happens within 5 s of every answer. Rollbacks that take
   * longer than `decideDeadlineMs` are given up, and reconciliation does them. Call it before a process ends
   * or closes its database. The loops do so when they are stopped. Never rejects; see the events
   * `rollback_postponed` and `history_not_saved`.
   */
  async flush(): Promise<void> {
    await this.#background.finish(this.#decideDeadlineMs);
    await this.#history.save();
  }

  /**
   * Runs a local transaction with a lease for the names that it changes: local writes, begin, COMMIT, commit
   * of the lease. Without changed names it calls no coordinator. Once the rows are saved it resolves,
   * whatever the coordinator answers.
   *
   * @throws The error of the body, or of the begin (`AlreadyClaimedError`, `ClaimLeasedError`, ...).
   * Nothing was saved.
   * @throws `LocalCommitUnknownError` if the rows may or may not be saved.
   */
  async transaction<T>(
    body: (tx: ClaimTransaction<Tx>) => Promise<T>,
    options: TransactionOptions = {},
  ): Promise<T> {
    const deadlineMs = this.#options.beginDeadlineMs ?? 250;
    return this.#call("transaction", () => this.#transaction(body, deadlineMs, options));
  }

  /**
   * Begins the lease before the local transaction: `plan` declares the changes, then the lease is begun, then
   * the rows are written and `body` runs. There is no network call while the transaction is open. The ids of
   * the rows must be known before the insert.
   */
  async preflight<T = void>(
    plan: (writes: PlannedWrites<Tx>) => void,
    body?: (tx: ClaimTransaction<Tx>) => Promise<T>,
    options: PreflightOptions = {},
  ): Promise<T> {
    return this.#call("preflight", () => this.#preflight(plan, body, options));
  }

  /**
   * Inserts any number of rows, in chunks with a local transaction and a lease each.
   *
   * @throws `BulkError` if a chunk fails, with the number of rows that were saved, and the rows that were
   * refused.
   *
   * @example
   * ```ts
   * const { records, refused } = await cell.bulkInsert(users, rows, {
   *   skipRefused: true,
   *   onProgress: ({ records }) => console.log(`${records} rows`),
   * });
   * for (const { index, field, value, problem } of refused)
   *   console.log(`row ${index}: ${field} ${value} is ${problem}`);
   * ```
   */
  async bulkInsert<T extends AnyTable>(
    table: T,
    rows: readonly NewRow<T>[],
    options: BulkInsertOptions = {},
  ): Promise<BulkProgress> {
    return this.#call("bulkInsert", () =>
      insertInChunks(this.#bulkPorts, this.#tables.of(table), rows as readonly AnyRow[], options),
    );
  }

  /** Deletes any number of rows that match `where`, in chunks with a local transaction and a lease each. */
  async bulkDelete<T extends AnyTable>(
    table: T,
    where: Where<T>,
    options: BulkOptions = {},
  ): Promise<BulkProgress> {
    return this.#call("bulkDelete", () =>
      deleteInChunks(this.#bulkPorts, this.#tables.of(table), where, options),
    );
  }

  /** Recovers leases of interrupted transactions: see `reconcile`. Run it about once a minute. */
  async reconcile(
    options: Partial<ReconcileOptions> = {},
  ): Promise<ReconcileResult & { deferred: DeferredCounters }> {
    const report = (finding: Finding): void => this.#callHook({ kind: "reconcile_finding", finding });
    return this.#call("reconcile", async () => {
      await this.#history.load();
      try {
        const ports = { local: this.#options.database, remote: this.#leases, report };
        const result = await reconcile(ports, options);
        return { ...result, deferred: await this.#deferredLeases.runAll() };
      } finally {
        await this.#history.save();
      }
    });
  }

  /** Reconciles periodically until stopped, for long-running processes. */
  startReconciling({ reportStatus = true, onRun, ...options }: ReconcileLoopOptions = {}): ReconcileLoop {
    const status = this.#statusReporter();
    let startedMs = 0;
    return new ReconcileLoop(
      (run) => {
        startedMs = performance.now();
        return this.reconcile(run);
      },
      {
        ...options,
        onRun: (run) => {
          if (reportStatus) status.reconciled(run, startedMs);
          callHook(onRun, run);
        },
      },
      () => this.#stopped(status),
    );
  }

  /**
   * Checks that rows and claims agree, and repairs drift: see `verify`. By default it is a dry run. Run it a
   * few times a day. The first one, with `apply: true` and `maxShare: 1`, is the backfill of an existing
   * application.
   *
   * @throws `VerificationAborted` if the run fails, or an error of the client before it has begun.
   */
  async verify(options: VerifyOptions = {}): Promise<VerificationReport> {
    return this.#call("verify", () =>
      this.#withHistory(async () => verify(await this.#verificationPorts(), options)),
    );
  }

  /** Verifies a few times a day until stopped. `apply` is true by default. */
  startVerifying({ reportStatus = true, onRun, ...options }: VerificationLoopOptions = {}): VerificationLoop {
    const status = this.#statusReporter();
    const run = (each: VerifyOptions): Promise<VerificationReport> => this.verify(each);
    const { cell = "" } = this.#options.client;
    const reporting: VerificationLoopOptions["onRun"] = (each) => {
      if (reportStatus) status.verified(each);
      callHook(onRun, each);
    };
    const loop = { apply: true, ...options, onRun: reporting };
    return new VerificationLoop(cell, run, loop, () => this.#stopped(status));
  }

  /**
   * Counts and digests the names that the cell's rows have in a scope, as a transfer compares them with the
   * claims. It reads all rows of the claimable tables, in pages, in one snapshot of the database.
   */
  async digestScope(scope: string): Promise<ScopeDigest> {
    const { database } = this.#options;
    return this.#call("digestScope", async () => {
      await this.#checkTables();
      return digestScope(database, this.#tables.all, this.#tables.types, scope);
    });
  }

  /**
   * Digests the rows of a transfer's scope, and reports them: a cut needs reports of both cells that equal
   * the claims. Call it in the source once nothing writes rows of the scope any more, and in the destination
   * once it has all rows.
   *
   * @returns the transfer. `missing` says what a cut still needs.
   * @throws FailedPreconditionError if the transfer was cut or aborted
   *
   * @example
   * ```ts
   * const id = "7-0198c5a0-5f6e-7000-8000-000000000001";
   * const { missing } = await cell.reportTransfer(id);
   * if (missing.length === 0) await client.transfers.cut(id);
   * ```
   */
  async reportTransfer(id: string, options: CallOptions = {}): Promise<Transfer> {
    const { transfers } = this.#options.client;
    return this.#call("reportTransfer", async () => {
      const { scope } = await transfers.get(id, options);
      return transfers.report(id, await this.digestScope(scope), options);
    });
  }

  /** Each loop has its own, because a report may belong to the request of a Worker that started the loop. */
  #statusReporter(): StatusReporter {
    return new StatusReporter((report, each) => this.#options.client.cells.reportStatus(report, each));
  }

  /** A loop has stopped. */
  async #stopped(status: StatusReporter): Promise<void> {
    await status.stop();
    await this.flush();
  }

  get #preflightDeadlineMs(): number {
    return this.#options.preflightDeadlineMs ?? 5_000;
  }

  get #decideDeadlineMs(): number {
    return this.#options.decideDeadlineMs ?? 2_000;
  }

  #verificationPorts(): Promise<VerificationPorts> {
    const { client, database } = this.#options;
    // A shard that has lost claims lets only verification take names (H6).
    const begin: LeaseCalls["begin"] = (uuid, batch, options) =>
      this.#leases.begin(uuid, { ...batch, verification: true }, options);
    const transactions = { ...this.#ports, leases: { ...this.#ports.leases, begin } };
    return createPorts({
      client,
      database,
      tables: this.#tables.all,
      types: this.#tables.types,
      transactions,
      beginDeadlineMs: this.#preflightDeadlineMs,
    });
  }

  async #preflight<T>(
    plan: (writes: PlannedWrites<Tx>) => void,
    body: ((tx: ClaimTransaction<Tx>) => Promise<T>) | undefined,
    { signal, waitMs, onPositions }: PreflightOptions,
  ): Promise<T> {
    const writes = new PlannedWrites<Tx>(this.#tables);
    plan(writes);
    const claimed = checkedBatch(writes.changes);
    const uuid = uuidv7();
    let tx: ClaimTransaction<Tx> | undefined;
    const leased = new LeasedTransaction(this.#ports, uuid);
    const begin = { signal, waitMs, deadlineMs: this.#preflightDeadlineMs };
    const preflight = (): Promise<T> =>
      leased.preflight(
        claimed,
        async (db) => {
          const its = this.#claimTransaction(db);
          tx = its;
          const result = await its.run(async () => {
            await writes.apply(its, this.#options.database);
            return body?.(its);
          });
          // The rows have changed since they were read, or the body wrote others, whose names are not in the
          // lease.
          if (!isSameBatch(its.changes.batch(), claimed))
            throw invalidArgument(
              "plan",
              "differs from what the transaction did to claimed columns: read the rows again, and retry",
            );
          return result as T;
        },
        begin,
      );
    return this.#withHistory(async () => {
      const value = await this.#explaining(preflight, () => ({ uuid, claimed, tx, leased }));
      if (leased.positions !== undefined) callHook(onPositions, leased.positions);
      await this.#runDeferred(tx?.deferred ?? []);
      return value;
    });
  }

  async #transaction<T>(
    body: (tx: ClaimTransaction<Tx>) => Promise<T>,
    deadlineMs: number,
    { signal, onPositions }: TransactionOptions,
  ): Promise<T> {
    const uuid = uuidv7();
    let claimed: ClaimBatch | undefined;
    let tx: ClaimTransaction<Tx> | undefined;
    const leased = new LeasedTransaction(this.#ports, uuid);
    const run = (): Promise<T> =>
      leased.inTransaction(
        async (db) => {
          const its = this.#claimTransaction(db);
          tx = its;
          const value = await its.run(() => body(its));
          claimed = checkedBatch(its.changes);
          return { value, claimed };
        },
        { signal, deadlineMs },
      );
    return this.#withHistory(async () => {
      const value = await this.#explaining(run, () => ({ uuid, claimed, tx, leased }));
      if (leased.positions !== undefined) callHook(onPositions, leased.positions);
      await this.#runDeferred(tx?.deferred ?? []);
      return value;
    });
  }

  /** Runs a public method, and shows its caller in the stacks of its errors. */
  async #call<T>(method: keyof Cell<Tx>, work: () => Promise<T>): Promise<T> {
    const site = new CallSite(this, method);
    this.#typesCheck.start();
    try {
      return await work();
    } catch (thrown) {
      const problem = await this.#options.database.problemOf(thrown, []);
      const error = problem?.kind === "not_installed" ? new NotInstalledError(problem.table, thrown) : thrown;
      if (isLeaseholdError(error)) site.showIn(error, { instead: toValidationErrors(error).length > 0 });
      throw error;
    }
  }

  /** Finds out which fields the error of a transaction is about. */
  async #explaining<T>(work: () => Promise<T>, transaction: () => TransactionState<Tx>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      const { uuid, claimed, tx, leased } = transaction();
      if (leased.hasEnded) this.#reportEnded(error, tx);
      // A failure to explain the error must not replace it.
      else if (!isLeaseholdError(error)) await this.#noteDuplicate(error).catch(() => {});
      // The body may have thrown an error of another call.
      else if (error.leaseUuid === uuid && claimed !== undefined)
        throw namingFields(error, claimed.origins, () => this.#noteRefusal(uuid, error));
      throw error;
    }
  }

  #reportEnded(error: unknown, tx: ClaimTransaction<Tx> | undefined): void {
    const { sources = [] } = tx?.changes ?? {};
    if (sources.length > 0) this.#callHook({ kind: "transaction_ended", sources, error: reasonOf(error) });
  }

  #noteRefusal(uuid: string, { code, field, message }: LeaseholdError): void {
    this.#callHook({ kind: "begin_refused", uuid, code, field, error: message });
  }

  async #noteDuplicate(error: unknown): Promise<void> {
    const problem = await this.#options.database.problemOf(error, this.#tables.all);
    if (problem?.kind !== "duplicate") return;
    const { table, columns } = problem;
    const write = this.#options.database.writeOf(error);
    const id = write?.claimable === table ? scalarText(write.id, table.idName) : undefined;
    rememberFields(error, fieldsOfDuplicate(table, columns, id));
  }

  #refuse([cascade]: readonly string[]): void {
    if (cascade !== undefined && this.#options.cascades !== "accept")
      throw invalidArgument("tables", `${cascade}, or set \`cascades: "accept"\``);
  }

  /** Checks what only the database knows about the tables, once. A failed check is repeated. */
  async #checkTables(): Promise<void> {
    if (this.#isChecked) return;
    const [fault] = await this.#options.database.storedFaults(this.#tables.all);
    if (fault !== undefined) throw invalidArgument("tables", fault);
    this.#refuse(await this.#options.database.storedCascades(this.#tables.all));
    this.#isChecked = true;
  }

  /** Loads what the cell has seen of its ledger before the first call, and saves it afterwards (L7). */
  async #withHistory<T>(work: () => Promise<T>): Promise<T> {
    await this.#checkTables();
    await this.#history.load();
    try {
      return await work();
    } finally {
      await this.#history.saveIfDue();
    }
  }

  get #bulkPorts(): BulkPorts<Tx> {
    return {
      transaction: (body, options) => this.#transaction(body, this.#preflightDeadlineMs, options),
      database: this.#options.database,
      limits: this.#chunkLimits,
    };
  }

  /** The deletions are saved, so a failure to release their names must not fail the caller's transaction. */
  async #runDeferred(deferred: readonly Deferred[]): Promise<void> {
    const counters = noDeferred();
    for (const each of deferred) {
      try {
        // An error that the body swallowed may have undone the deletion, although the database reported a
        // commit.
        const { isSaved, isInTransaction } = await this.#options.database.look(each.uuid);
        if (isSaved && !isInTransaction) await this.#deferredLeases.run(each, counters);
        else
          this.#callHook({
            kind: "release_postponed",
            uuid: each.uuid,
            error: "its row was not found in the database",
          });
      } catch (error) {
        this.#callHook({
          kind: "release_postponed",
          uuid: each.uuid,
          error: reasonOf(error),
        });
        return;
      }
      // The next one would fail in the same way while the caller waits. Reconciliation handles the rest.
      if (counters.postponed + counters.refused > 0) return;
    }
  }

  #claimTransaction(db: Tx): ClaimTransaction<Tx> {
    return new ClaimTransaction(db, this.#options.database, this.#tables, this.#chunkLimits);
  }

  get #ports(): ConstructorParameters<typeof LeasedTransaction<Tx>>[0] {
    const { commit, rollback } = this.#decisions;
    const leases: LeaseCalls = {
      begin: (uuid, batch, options) =>
        beginAdjusting(this.#leases, uuid, batch, options, (conflicts) =>
          this.#callHook({ kind: "not_owned", uuid, conflicts }),
        ),
      commit,
      rollback,
    };
    return {
      local: this.#options.database,
      leases,
      inBackground: (work) => this.#background.start(work),
      report: (event) => this.#callHook(event),
    };
  }

  get #deferredLeases(): DeferredLeases {
    const deadline = { deadlineMs: this.#preflightDeadlineMs };
    const leases = {
      begin: (uuid: string, batch: Batch) => this.#leases.begin(uuid, batch, deadline),
      ...this.#decisions,
    };
    return new DeferredLeases(this.#options.database, leases, (uuid, error) =>
      this.#callHook({ kind: "release_postponed", uuid, error }),
    );
  }

  /** Commit and rollback, with the deadline for waiting callers unless no caller waits. */
  get #decisions(): Pick<LeaseCalls, "commit" | "rollback"> {
    const deadline = { deadlineMs: this.#decideDeadlineMs };
    return {
      commit: (uuid) => this.#leases.commit(uuid, deadline),
      rollback: (uuid, givesUp) =>
        givesUp === undefined
          ? this.#leases.rollback(uuid, deadline)
          : rollBackPatiently(this.#leases, uuid, givesUp),
    };
  }

  get #chunkLimits(): ChunkLimits {
    return { ...chunkDefaults, ...this.#options.chunk };
  }

  #callHook(event: CellEvent): void {
    callHook(this.#options.onEvent, event);
  }
}

/**
 * Joins a client, a database and its claimable tables into a cell.
 *
 * @throws {InvalidArgumentError} When the client has no `cell`, when two tables have the same source, or when
 * a foreign key deletes or changes claimed rows (see `cascades`).
 *
 * @example
 * ```ts
 * import { createCell } from "leasehold/cell";
 * import { postgres } from "leasehold/cell/postgres";
 *
 * const cell = createCell({ client, database: postgres(db), tables: [claimableUsers] });
 * await cell.install();
 * const user = await cell.transaction((tx) => tx.insert(users, { username: "ada" }));
 * ```
 */
export const createCell = <Tx>(options: CellOptions<Tx>): Cell<Tx> => new Cell(options);

function checkedBatch(changes: Changes): ClaimBatch | undefined {
  const claimed = changes.batch();
  if (claimed === undefined) return undefined;
  const { creates, destroys, replaces } = claimed.origins;
  const ops = creates.length + destroys.length + replaces.length;
  const most = defaultLimits.batchOps;
  if (ops > most)
    throw invalidArgument(
      "transaction",
      `changes ${ops} claims, and a lease may change ${most}: use bulkInsert, bulkDelete or deleteLater`,
    );
  return claimed;
}

const isSameBatch = (one: ClaimBatch | undefined, other: ClaimBatch | undefined): boolean =>
  JSON.stringify(one?.batch) === JSON.stringify(other?.batch);
