import type { SQL, Table } from "drizzle-orm";
import { v7 as uuidv7 } from "uuid";
import type { Client } from "../client/client.ts";
import type { CallOptions } from "../client/connection.ts";
import { callHook } from "../client/hooks.ts";
import type { Batch } from "../client/api-types.ts";
import { defaultLimits } from "../core/limits.ts";
import { beginAdjusting } from "./begin.ts";
import type { Changes, ClaimBatch } from "./changes.ts";
import { chunkDefaults, chunksOf, type ChunkLimits } from "./chunks.ts";
import { ClaimTransaction } from "./claim-transaction.ts";
import type { AnyRow, Claimable, NewRow } from "./claimable.ts";
import { DeferredLeases, noDeferred, type DeferredCounters } from "./deferred.ts";
import { BulkError, invalidArgument } from "./errors.ts";
import { LeasedTransaction, type LeaseCalls, type LeaseEvent } from "./leased-transaction.ts";
import type { CellDatabase, Deferred } from "./local.ts";
import { Plan } from "./preflight.ts";
import { reconcile, type Finding, type ReconcileOptions, type ReconcileResult } from "./reconcile.ts";
import { ReconcileLoop, type ReconcileLoopOptions } from "./reconcile-loop.ts";
import { ClientLeases } from "./remote-leases.ts";
import { ClaimableTables } from "./tables.ts";
import { rememberOrigins } from "./validation.ts";
import { portsOf } from "./verification/cell-ports.ts";
import { VerificationLoop, type VerificationLoopOptions } from "./verification/loop.ts";
import type { VerifyOptions } from "./verification/options.ts";
import type { VerificationPorts } from "./verification/ports.ts";
import type { VerificationReport } from "./verification/report.ts";
import { verify } from "./verification/verify.ts";

export interface CellOptions<Tx> {
  /** With the cell's id and key. */
  client: Client;
  /** `postgres(db)` or `mysql(db)`. */
  database: CellDatabase<Tx>;
  tables: readonly Claimable[];
  /**
   * Foreign keys with which the database deletes or changes claimed rows by itself, unseen: `"refuse"` (the default) throws where the drizzle schema declares
   * one. `"accept"` says that no code relies on them: children are deleted with `tx` before their parents are.
   */
  cascades?: "refuse" | "accept";
  /** For a begin inside a local transaction, with all its tries: 250 ms by default, because the transaction holds its locks meanwhile. */
  beginDeadlineMs?: number;
  /** For a begin before the local transaction, and of bulk changes: 5 s by default. */
  preflightDeadlineMs?: number;
  /** For a commit or rollback that a caller waits for: 2 s by default. What it does not reach is left to reconciliation. */
  decideDeadlineMs?: number;
  /** Of bulk changes. */
  chunk?: Partial<ChunkLimits>;
  /** Hears of what a caller is not told: a commit that was left to reconciliation, a contradiction. Should be loud about the latter. */
  onEvent?: (event: CellEvent) => void;
}

export type CellEvent =
  | LeaseEvent
  | { kind: "deferred_left"; uuid: string; why: string }
  | { kind: "reconcile_finding"; finding: Finding };

export interface TransactionOptions {
  /** Ends the wait for the begin; the local transaction is rolled back then. */
  signal?: AbortSignal | undefined;
}

export interface BulkOptions extends TransactionOptions {
  /** Rows that meet a unique key of the table are left out instead of failing their chunk: for going on after a `BulkError` or a crash. */
  skipExisting?: boolean;
  onProgress?: (done: BulkProgress) => void;
}

export interface BulkProgress {
  records: number;
  chunks: number;
}

/** The cell's side of the protocol: local transactions that take names, and the recovery of those that were interrupted. */
export class Cell<Tx> {
  readonly #options: CellOptions<Tx>;
  readonly #tables: ClaimableTables;
  readonly #leases: ClientLeases;

  constructor(options: CellOptions<Tx>) {
    if (options.client.cell === undefined)
      throw invalidArgument("client", "must have a cell: give `cell` to createClient");
    this.#options = options;
    this.#tables = new ClaimableTables(options.tables);
    const [cascade] = options.database.cascades(options.tables);
    if (cascade !== undefined && options.cascades !== "accept")
      throw invalidArgument("tables", `${cascade}; or say cascades: "accept"`);
    this.#leases = new ClientLeases(options.client);
  }

  /** Makes the cell's own tables, where they are missing. Migrations can do it as well. */
  install(): Promise<void> {
    return this.#options.database.install();
  }

  /**
   * A local transaction, and a lease for the names that it changes: local writes, begin, COMMIT, commit of the lease. Without changed names nobody is
   * asked. Rejects with what the body throws, with the begin's error (`AlreadyClaimedError`, `ClaimLeasedError`, `TimeoutError`, ...), after which
   * nothing was saved; or with `LocalCommitUnknownError`. Once the rows are saved it resolves, whatever the coordinator says.
   */
  async transaction<T>(
    body: (tx: ClaimTransaction<Tx>) => Promise<T>,
    options: TransactionOptions = {},
  ): Promise<T> {
    return this.#transaction(body, { ...options, deadlineMs: this.#options.beginDeadlineMs ?? 250 });
  }

  /**
   * The other order: `plan` tells the changes, the names are taken, and only then the rows are written, followed by `body`. No network while a
   * transaction is open; for databases that should not wait, and rows whose ids are known before the insert.
   */
  async preflight<T = void>(
    plan: (plan: Plan<Tx>) => void,
    body?: (tx: ClaimTransaction<Tx>) => Promise<T>,
    options: TransactionOptions = {},
  ): Promise<T> {
    const planned = new Plan<Tx>(this.#tables);
    plan(planned);
    const claimed = checkedBatch(planned.changes);
    let deferred: readonly Deferred[] = [];
    const leased = new LeasedTransaction(this.#ports, uuidv7());
    const begin = { ...options, deadlineMs: this.#preflightDeadlineMs };
    const value = await remembering(claimed, () =>
      leased.preflight(
        claimed,
        async (db) => {
          const tx = this.#claimTransaction(db);
          ({ deferred } = tx);
          await planned.apply(tx, this.#options.database);
          const result = await body?.(tx);
          await tx.finish();
          // Rows that were changed by somebody else since they were read, or written by the body: their names were not taken.
          if (!isSameBatch(tx.changes.batch(), claimed))
            throw invalidArgument(
              "plan",
              "is not what the transaction did to claimed columns: read the rows again",
            );
          return result as T;
        },
        begin,
      ),
    );
    await this.#afterwards(deferred);
    return value;
  }

  /** Inserts any number of rows, in chunks that are a local transaction and a lease each. Rejects with `BulkError`, which tells what is done. */
  async bulkInsert<T extends Table>(
    table: T,
    rows: readonly NewRow<T>[],
    options: BulkOptions = {},
  ): Promise<BulkProgress> {
    const claimable = this.#tables.of(table);
    const chunks = chunksOf(rows as readonly AnyRow[], claimable, this.#chunk);
    const { skipExisting = false } = options;
    return this.#inChunks(options, chunks, async (chunk) => {
      await this.#bulk(options, (tx) => tx.insertRows(claimable, chunk, { skipExisting }));
      return chunk.length;
    });
  }

  /** Deletes the rows that `where` matches, however many, in chunks that are a local transaction and a lease each. */
  async bulkDelete(
    table: Table,
    where: SQL | undefined,
    options: Omit<BulkOptions, "skipExisting"> = {},
  ): Promise<BulkProgress> {
    const claimable = this.#tables.of(table);
    const { database } = this.#options;
    const limit = this.#chunk.records;
    const endless = (function* (): Generator<undefined> {
      for (;;) yield undefined;
    })();
    return this.#inChunks(options, endless, async () =>
      this.#bulk(options, async (tx) => {
        const found = await database.lock(tx.db, claimable, where, limit);
        const [rows = []] = chunksOf(found, claimable, this.#chunk);
        await tx.deleteRows(claimable, rows);
        return rows.length;
      }),
    );
  }

  /** Recovers the leases that this cell lost sight of: see `reconcile`. Meant to run about once a minute, for instance by a cron. */
  async reconcile(
    options: Partial<ReconcileOptions> = {},
  ): Promise<ReconcileResult & { deferred: DeferredCounters }> {
    const report = (finding: Finding): void => this.#tell({ kind: "reconcile_finding", finding });
    const result = await reconcile({ local: this.#options.database, remote: this.#leases, report }, options);
    return { ...result, deferred: await this.#deferredLeases.runAll() };
  }

  /** The same, again and again, until it is stopped: for processes that live long. */
  startReconciling(options: ReconcileLoopOptions = {}): ReconcileLoop {
    return new ReconcileLoop((run) => this.reconcile(run), options);
  }

  /**
   * Checks that rows and claims agree, both ways, and mends what differs: see `verify`. By default only tells what it would do. Meant to run a few
   * times a day; the first one, with `maxShare: 1`, is the backfill of an existing application. Rejects with `VerificationAborted`, or an error of the client's before
   * it has begun.
   */
  async verify(options: VerifyOptions = {}): Promise<VerificationReport> {
    return verify(await this.#verificationPorts(), options);
  }

  /** The same, a few times a day, until it is stopped; it applies what it finds unless told otherwise. */
  startVerifying(options: VerificationLoopOptions = {}): VerificationLoop {
    const run = (each: VerifyOptions): Promise<VerificationReport> => this.verify(each);
    return new VerificationLoop(this.#options.client.cell ?? "", run, { apply: true, ...options });
  }

  get #preflightDeadlineMs(): number {
    return this.#options.preflightDeadlineMs ?? 5_000;
  }

  #verificationPorts(): Promise<VerificationPorts> {
    const { client, database } = this.#options;
    const begin: LeaseCalls["begin"] = (uuid, batch, options) => this.#leases.begin(uuid, batch, options);
    const transactions = { ...this.#ports, leases: { ...this.#ports.leases, begin } };
    return portsOf({
      client,
      database,
      tables: this.#tables.all,
      transactions,
      beginDeadlineMs: this.#preflightDeadlineMs,
    });
  }

  async #transaction<T>(body: (tx: ClaimTransaction<Tx>) => Promise<T>, begin: CallOptions): Promise<T> {
    let claimed: ClaimBatch | undefined;
    let deferred: readonly Deferred[] = [];
    const leased = new LeasedTransaction(this.#ports, uuidv7());
    const run = (): Promise<T> =>
      leased.inTransaction(async (db) => {
        const tx = this.#claimTransaction(db);
        ({ deferred } = tx);
        const value = await body(tx);
        await tx.finish();
        claimed = checkedBatch(tx.changes);
        return { value, claimed };
      }, begin);
    const value = await remembering(() => claimed, run);
    await this.#afterwards(deferred);
    return value;
  }

  #bulk<T>({ signal }: TransactionOptions, body: (tx: ClaimTransaction<Tx>) => Promise<T>): Promise<T> {
    return this.#transaction(body, { deadlineMs: this.#preflightDeadlineMs, signal });
  }

  async #inChunks<C>(
    { signal, onProgress }: BulkOptions,
    chunks: Iterable<C>,
    work: (chunk: C) => Promise<number>,
  ): Promise<BulkProgress> {
    const done = { records: 0, chunks: 0 };
    for (const chunk of chunks) {
      try {
        signal?.throwIfAborted();
        const records = await work(chunk);
        if (records === 0) return done;
        done.records += records;
      } catch (error) {
        throw new BulkError(error, { recordsDone: done.records, chunksDone: done.chunks });
      }
      done.chunks += 1;
      callHook(onProgress, { ...done });
    }
    return done;
  }

  /** The rows are gone and saved; giving their names up can fail without anybody's call failing. */
  async #afterwards(deferred: readonly Deferred[]): Promise<void> {
    const counters = noDeferred();
    for (const each of deferred) {
      try {
        // An error that somebody swallowed can have undone the deletion, although the database said that it committed.
        const { isSaved, isInTransaction } = await this.#options.database.look(each.uuid);
        if (isSaved && !isInTransaction) await this.#deferredLeases.run(each, counters);
        else this.#tell({ kind: "deferred_left", uuid: each.uuid, why: "its row is not seen to be saved" });
      } catch (error) {
        this.#tell({
          kind: "deferred_left",
          uuid: each.uuid,
          why: error instanceof Error ? error.message : String(error),
        });
        return;
      }
      // The next would meet the same, and the caller waits: reconciliation goes on with them.
      if (counters.left + counters.refused > 0) return;
    }
  }

  #claimTransaction(db: Tx): ClaimTransaction<Tx> {
    return new ClaimTransaction(db, this.#options.database, this.#tables, this.#chunk);
  }

  get #ports(): ConstructorParameters<typeof LeasedTransaction<Tx>>[0] {
    const { commit, rollback } = this.#decisions;
    const leases: LeaseCalls = {
      begin: (uuid, batch, options) =>
        beginAdjusting(this.#leases, uuid, batch, options, (conflicts) =>
          this.#tell({ kind: "not_owned", uuid, conflicts }),
        ),
      commit,
      rollback,
    };
    return { local: this.#options.database, leases, report: (event) => this.#tell(event) };
  }

  get #deferredLeases(): DeferredLeases {
    const deadline = { deadlineMs: this.#preflightDeadlineMs };
    const leases = {
      begin: (uuid: string, batch: Batch) => this.#leases.begin(uuid, batch, deadline),
      ...this.#decisions,
    };
    return new DeferredLeases(this.#options.database, leases, (uuid, why) =>
      this.#tell({ kind: "deferred_left", uuid, why }),
    );
  }

  /** For callers that wait. */
  get #decisions(): Pick<LeaseCalls, "commit" | "rollback"> {
    const deadline = { deadlineMs: this.#options.decideDeadlineMs ?? 2_000 };
    return {
      commit: (uuid) => this.#leases.commit(uuid, deadline),
      rollback: (uuid) => this.#leases.rollback(uuid, deadline),
    };
  }

  get #chunk(): ChunkLimits {
    return { ...chunkDefaults, ...this.#options.chunk };
  }

  #tell(event: CellEvent): void {
    callHook(this.#options.onEvent, event);
  }
}

/**
 * Joins a client, a database and its claimable tables into a cell.
 *
 * @throws {InvalidArgumentError} When the client has no `cell`, when two tables have the same source, or when a
 * foreign key deletes or changes claimed rows (see `cascades`).
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
      `changes ${ops} claims, and a lease may have ${most}: use bulkInsert, bulkDelete or deleteLater`,
    );
  return claimed;
}

const isSameBatch = (one: ClaimBatch | undefined, other: ClaimBatch | undefined): boolean =>
  JSON.stringify(one?.batch) === JSON.stringify(other?.batch);

/** So that `toValidationErrors` can tell the fields of an error. */
async function remembering<T>(
  claimed: ClaimBatch | undefined | (() => ClaimBatch | undefined),
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    rememberOrigins(error, (typeof claimed === "function" ? claimed() : claimed)?.origins);
    throw error;
  }
}
