import { and, eq, inArray, isNotNull, sql } from "drizzle-orm";
import { getTableConfig, type MySqlTable } from "drizzle-orm/mysql-core";
import { declaredCascades } from "../cascades.ts";
import { inChunks } from "../chunks.ts";
import type { Claimable } from "../claimable.ts";
import { transactionEnded } from "../errors.ts";
import type { CellDatabase, DatabaseProblem, Deferred, NewLocalLease, TransactionResult } from "../local.ts";
import { runTransaction, type TransactionMark } from "../run-transaction.ts";
import {
  sqlOrm,
  sqlTablesOf,
  type Connection,
  type Select,
  type SqlOrm,
  type SqlParts,
  type TransactionConfig,
} from "../sql/connection.ts";
import {
  allOrNothing,
  ROWS_PER_STATEMENT,
  SqlDatabase,
  SqlLedgerHistory,
  type HistoryRow,
} from "../sql/database.ts";
import type { AnyRow } from "../table.ts";
import {
  duplicateIn,
  isAbort,
  isDeadlock,
  isDuplicateKey,
  isLockConflict,
  missingTableOf,
} from "./failure.ts";
import { storedTraits } from "./information-schema.ts";
import {
  ledgerHistory,
  migration,
  outstandingLeases,
  ownTables,
  verificationQueue,
  type Orm,
} from "./schema.ts";
import {
  affectedRows,
  isInTransaction,
  releaseSavepoint,
  sessionFaults,
  setSavepoint,
  withLockWait,
} from "./session.ts";
import { ageMsOf, MysqlVerification } from "./verification.ts";

class MysqlLedgerHistory extends SqlLedgerHistory<Orm> {
  constructor(connection: Connection<unknown, Orm>) {
    super(connection, ledgerHistory);
  }

  protected override upsert(orm: Orm, rows: HistoryRow[]): Promise<unknown> {
    return orm
      .insert(ledgerHistory)
      .values(rows)
      .onDuplicateKeyUpdate({
        set: {
          position: sql.raw("GREATEST(`position`, VALUES(`position`))"),
          savedAt: sql`UTC_TIMESTAMP(3)`,
        },
      });
  }
}

export interface MysqlDatabaseOptions<Config = TransactionConfig> {
  /**
   * Options of local transactions: the server's default, usually REPEATABLE READ. READ COMMITTED is enough,
   * and does not lock the gaps between rows during a begin.
   */
  transaction?: Config;
  /**
   * How long a fence waits for a local transaction that is saving the lease: 2 s by default, rounded up to
   * seconds.
   */
  fenceWaitMs?: number;
}

export class MysqlDatabase<Tx> extends SqlDatabase<Tx, Orm> implements CellDatabase<Tx> {
  readonly verification: MysqlVerification<Tx>;
  readonly ledgerHistory: MysqlLedgerHistory;
  readonly #options: MysqlDatabaseOptions;

  constructor(parts: SqlParts<Tx, Orm>, options: MysqlDatabaseOptions) {
    super(parts, { leases: outstandingLeases, ageMsOf, readsSnapshot: true, storedTraits });
    this.#options = options;
    this.verification = new MysqlVerification(parts);
    this.ledgerHistory = new MysqlLedgerHistory(parts.connection);
  }

  async install(): Promise<void> {
    for (const statement of migration) await this.#orm().execute(sql.raw(statement));
  }

  /**
   * A deadlock rolls the whole transaction back, and DDL commits it. Later statements are then saved at once
   * (MariaDB) or by COMMIT in a new transaction (MySQL), which would save a lease without its rows. A
   * savepoint does not outlive its transaction, so releasing one at the end proves that the transaction is
   * still the same.
   */
  async run<T>(body: (tx: Tx) => Promise<T>): Promise<TransactionResult<T>> {
    const { describeError } = this.connection;
    const mark: TransactionMark<Tx> = {
      set: (tx) => {
        this.errors.begin(tx);
        return setSavepoint(this.#orm(tx));
      },
      isGone: async (tx) => !(await releaseSavepoint(this.#orm(tx), describeError)),
      // After a deadlock, `tx` writes nothing more, so the application gets the error that it made of it.
      undoneBy: (tx, error) =>
        isLockConflict(error, describeError) ||
        this.errors.of(tx).some((earlier) => isDeadlock(earlier, describeError))
          ? error
          : undefined,
    };
    const transaction = (work: (tx: Tx) => Promise<T>): Promise<T> =>
      this.connection.transaction(work, this.#options.transaction);
    return runTransaction({
      transaction,
      body,
      mark,
      isAbort: (error) => isAbort(error, describeError),
    });
  }

  async insertLease(tx: Tx, { uuid, sources, deferred }: NewLocalLease): Promise<void> {
    await this.#requireTransaction(tx);
    await this.#orm(tx)
      .insert(outstandingLeases)
      .values({ uuid, sources, ...(deferred === undefined ? {} : { deferred }) });
  }

  /** Outside a transaction, a write would be saved at once, and no rollback would undo it. */
  async #requireTransaction(tx: Tx): Promise<void> {
    if (!(await isInTransaction(this.#orm(tx), this.connection.describeError))) throw transactionEnded();
  }

  /**
   * `isInTransaction` matters if the pool has one connection. In a larger pool, only the connection that
   * wrote the row could read it before it is committed, and that one has ended its transaction.
   */
  async look(uuid: string): Promise<{ isSaved: boolean; isInTransaction: boolean }> {
    if (await isInTransaction(this.#orm(), this.connection.describeError))
      return { isSaved: false, isInTransaction: true };
    const its = this.savedLease(uuid);
    const rows = await this.#orm()
      .select({ uuid: outstandingLeases.uuid })
      .from(outstandingLeases)
      .where(its);
    return { isSaved: rows.length > 0, isInTransaction: false };
  }

  /**
   * The insert is safe because it waits for a local transaction that has written the same key and not ended
   * yet. It locks an existing key, whose state is then read. If two fences waited for a transaction that was
   * rolled back, each holds the gap that the other needs. One of them gets a deadlock error, and may be
   * retried later.
   */
  async fence(uuid: string): Promise<"fenced" | "saved" | "in_flight"> {
    const seconds = Math.max(1, Math.ceil((this.#options.fenceWaitMs ?? 2_000) / 1_000));
    try {
      return await this.#committed(async (tx) => {
        await withLockWait(tx, seconds, async () =>
          tx
            .insert(outstandingLeases)
            .values({ uuid, state: "fenced", sources: [] })
            .onDuplicateKeyUpdate({ set: { uuid: sql`${outstandingLeases.uuid}` } }),
        );
        const [row] = await tx
          .select({ state: outstandingLeases.state })
          .from(outstandingLeases)
          .where(eq(outstandingLeases.uuid, uuid));
        return row?.state ?? "in_flight";
      });
    } catch (error) {
      if (isLockConflict(error, this.connection.describeError)) return "in_flight";
      throw error;
    }
  }

  /**
   * Deletes by key, because a DELETE that searches locks all rows it passes, and waits for open transactions.
   */
  async removeFences(olderThanMs: number): Promise<number> {
    const isFenced = eq(outstandingLeases.state, "fenced");
    const isOld = sql`${ageMsOf(outstandingLeases.createdAt)} >= ${olderThanMs}`;
    const found = await this.#orm()
      .select({ uuid: outstandingLeases.uuid })
      .from(outstandingLeases)
      .where(and(isFenced, isOld));
    const uuids = found.map(({ uuid }) => uuid);
    await inChunks(uuids, ROWS_PER_STATEMENT, async (chunk) => {
      await this.#orm()
        .delete(outstandingLeases)
        .where(and(isFenced, inArray(outstandingLeases.uuid, [...chunk])));
      return [];
    });
    return uuids.length;
  }

  async queueForVerification(uuid: string): Promise<void> {
    const its = this.savedLease(uuid);
    await this.#committed(async (tx) => {
      const [lease] = await tx
        .select({ sources: outstandingLeases.sources })
        .from(outstandingLeases)
        .where(its)
        .for("update");
      const rows = (lease?.sources ?? []).map(({ type, id }) => ({
        sourceType: type,
        sourceId: id,
        leaseUuid: uuid,
      }));
      await tx.delete(outstandingLeases).where(its);
      if (rows.length > 0)
        await tx
          .insert(verificationQueue)
          .values(rows)
          .onDuplicateKeyUpdate({ set: { leaseUuid: uuid } });
    });
  }

  /** An error of a statement undoes only that statement, and the body may catch it. */
  override async insert(tx: Tx, claimable: Claimable, rows: readonly AnyRow[]): Promise<AnyRow[]> {
    await this.#requireTransaction(tx);
    const insert = (): Promise<AnyRow[]> => super.insert(tx, claimable, rows);
    return rows.length <= 1 ? insert() : allOrNothing(this.#orm(tx), insert);
  }

  async tryInsert(tx: Tx, claimable: Claimable, rows: readonly AnyRow[]): Promise<AnyRow[] | undefined> {
    try {
      return await this.insert(tx, claimable, rows);
    } catch (error) {
      if (isDuplicateKey(error, this.connection.describeError)) return undefined;
      throw error;
    }
  }

  /** A locking read that finds no row locks the gap, and two transactions that insert into it deadlock. */
  async mayHave(tx: Tx, claimable: Claimable, where: unknown): Promise<boolean> {
    const found = await this.rows.select(tx, claimable, { where }, { limit: 1, isLocking: false });
    return found.length > 0;
  }

  override async update(
    tx: Tx,
    claimable: Claimable,
    ids: readonly unknown[],
    set: AnyRow,
  ): Promise<AnyRow[]> {
    await this.#requireTransaction(tx);
    return super.update(tx, claimable, ids, set);
  }

  override async delete(tx: Tx, claimable: Claimable, ids: readonly unknown[]): Promise<number> {
    await this.#requireTransaction(tx);
    return super.delete(tx, claimable, ids);
  }

  async replaceDeferred(uuid: string, next: Deferred | undefined): Promise<boolean> {
    const its = and(this.savedLease(uuid), isNotNull(outstandingLeases.deferred));
    const found =
      next === undefined
        ? this.#orm().delete(outstandingLeases).where(its)
        : this.#orm().update(outstandingLeases).set({ uuid: next.uuid, deferred: next.batch }).where(its);
    return (await affectedRows(found)) > 0;
  }

  get readCommitted(): CellDatabase<Tx> {
    const { transaction = {}, ...options } = this.#options;
    return new MysqlDatabase(this.parts, {
      ...options,
      transaction: { ...transaction, isolationLevel: "read committed" },
    });
  }

  async problemOf(error: unknown, tables: readonly Claimable[]): Promise<DatabaseProblem | undefined> {
    const { describeError } = this.connection;
    const message = missingTableOf(error, describeError);
    const missing = ownTables.find((table) => message?.includes(table) === true);
    if (missing !== undefined) return { kind: "not_installed", table: missing };
    if (!isDuplicateKey(error, describeError)) return undefined;
    const all = await sqlTablesOf(this.parts.tables, tables);
    const written = this.writeOf(error)?.claimable;
    const its = all.find(({ claimable }) => claimable === written);
    return duplicateIn(all, error, its, describeError);
  }

  override async storedFaults(claimables: readonly Claimable[]): Promise<string[]> {
    const faults = await sessionFaults(this.#orm());
    return faults.length > 0 ? faults : super.storedFaults(claimables);
  }

  cascades(claimables: readonly Claimable[]): string[] {
    // Tables that are not declared have only those of the database.
    if (this.parts.foreignKeys !== undefined) return [];
    return declaredCascades(claimables, (table) => getTableConfig(table as MySqlTable).foreignKeys);
  }

  /**
   * READ COMMITTED reads no uncommitted rows and no old snapshot, and locks no gaps, whatever the server's
   * default.
   */
  #committed<T>(work: (tx: Orm) => Promise<T>): Promise<T> {
    return this.connection.transaction((tx) => work(this.#orm(tx)), { isolationLevel: "read committed" });
  }

  protected override selectCommitted<Row>(query: (orm: SqlOrm) => Select<Row>): Promise<Row[]> {
    return this.#committed(async (tx) => query(sqlOrm(tx)));
  }

  #orm(tx?: Tx): Orm {
    return this.connection.orm(tx);
  }
}
