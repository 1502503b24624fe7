import { and, eq, inArray, is, isNotNull, sql } from "drizzle-orm";
import {
  getTableConfig,
  MySqlTransaction,
  type MySqlTable,
  type MySqlTransactionConfig,
} from "drizzle-orm/mysql-core";
import { cascadesOf } from "../cascades.ts";
import type { Claimable } from "../claimable.ts";
import { invalidArgument } from "../errors.ts";
import { inChunks } from "../in-chunks.ts";
import type { CellDatabase, DatabaseProblem, Deferred, NewLocalLease, TransactionResult } from "../local.ts";
import { runTransaction } from "../run-transaction.ts";
import { SqlDatabase } from "../sql/database.ts";
import { sqlOrm, type Select, type SqlOrm } from "../sql/orm.ts";
import { ageMsOf } from "./age.ts";
import { affectedRows, isSingleConnection } from "./driver.ts";
import { isAbort, isLockConflict, missingTableOf } from "./failure.ts";
import { Insert } from "./insert.ts";
import { MysqlLedgerHistory } from "./ledger-history.ts";
import { ormOf, type Orm } from "./orm.ts";
import { migration, outstandingLeases, ownTables, verificationQueue } from "./schema.ts";
import { endedEarly, isInTransaction, releaseSavepoint, setSavepoint, withLockWait } from "./session.ts";
import { duplicateIn } from "./unique-keys.ts";
import { MysqlVerification } from "./verification.ts";

type AnyRow = Readonly<Record<string, unknown>>;

/** A drizzle database on MySQL or MariaDB. */
export interface MysqlOrm<Tx> {
  transaction<T>(body: (tx: Tx) => Promise<T>, config?: MySqlTransactionConfig): Promise<T>;
}

export interface MysqlOptions {
  /**
   * Options of local transactions: the server's default, usually REPEATABLE READ. READ COMMITTED is enough,
   * and does not lock the gaps between rows during a begin.
   */
  transaction?: MySqlTransactionConfig;
  /**
   * How long a fence waits for a local transaction that is saving the lease: 2 s by default, rounded up to
   * seconds.
   */
  fenceWaitMs?: number;
}

/** Far below `max_allowed_packet`. */
const ROWS_PER_STATEMENT = 1_000;

export class MysqlDatabase<Tx> extends SqlDatabase<Tx> implements CellDatabase<Tx> {
  readonly verification: MysqlVerification<Tx>;
  readonly ledgerHistory: MysqlLedgerHistory;
  readonly #db: MysqlOrm<Tx>;
  readonly #options: MysqlOptions;

  constructor(db: MysqlOrm<Tx>, options: MysqlOptions = {}) {
    // Its COMMIT would only release a savepoint, so the lease would be committed before the rows.
    if (is(db, MySqlTransaction))
      throw invalidArgument("db", "must be the database, not a transaction of it");
    // On one connection, concurrent transactions are one: the COMMIT of each saves what the others wrote so
    // far.
    if (isSingleConnection(db))
      throw invalidArgument(
        "db",
        "must have a pool, because concurrent transactions on one connection would be one: " +
          "use drizzle(createPool(...))",
      );
    super(db, outstandingLeases, ageMsOf);
    this.#db = db;
    this.#options = options;
    this.verification = new MysqlVerification(db);
    this.ledgerHistory = new MysqlLedgerHistory(db);
  }

  async install(): Promise<void> {
    for (const statement of migration) await this.#orm.execute(sql.raw(statement));
  }

  /**
   * A deadlock rolls the whole transaction back, and DDL commits it. Later statements are then saved at once
   * (MariaDB) or by COMMIT in a new transaction (MySQL), which would save a lease without its rows. A
   * savepoint does not outlive its transaction, so releasing one at the end proves that the transaction is
   * still the same.
   */
  async run<T>(body: (tx: Tx) => Promise<T>): Promise<TransactionResult<T>> {
    const guarded = async (tx: Tx): Promise<T> => {
      await setSavepoint(ormOf(tx));
      const value = await body(tx);
      await releaseSavepoint(ormOf(tx));
      return value;
    };
    const transaction = (work: (tx: Tx) => Promise<T>): Promise<T> =>
      this.#db.transaction(work, this.#options.transaction);
    return runTransaction({ transaction, body: guarded, isAbort });
  }

  async insertLease(tx: Tx, { uuid, sources, deferred }: NewLocalLease): Promise<void> {
    // Outside a transaction, the row would be saved at once, and no rollback would remove it.
    if (!(await isInTransaction(ormOf(tx)))) throw endedEarly();
    await ormOf(tx)
      .insert(outstandingLeases)
      .values({ uuid, sources, ...(deferred === undefined ? {} : { deferred }) });
  }

  /**
   * `isInTransaction` matters if the pool has one connection. In a larger pool, only the connection that
   * wrote the row could read it before it is committed, and that one has ended its transaction.
   */
  async look(uuid: string): Promise<{ isSaved: boolean; isInTransaction: boolean }> {
    if (await isInTransaction(this.#orm)) return { isSaved: false, isInTransaction: true };
    const its = this.savedLease(uuid);
    const rows = await this.#orm.select({ uuid: outstandingLeases.uuid }).from(outstandingLeases).where(its);
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
      if (isLockConflict(error)) return "in_flight";
      throw error;
    }
  }

  /**
   * Deletes by key, because a DELETE that searches locks all rows it passes, and waits for open transactions.
   */
  async removeFences(olderThanMs: number): Promise<number> {
    const isFenced = eq(outstandingLeases.state, "fenced");
    const isOld = sql`${ageMsOf(outstandingLeases.createdAt)} >= ${olderThanMs}`;
    const found = await this.#orm
      .select({ uuid: outstandingLeases.uuid })
      .from(outstandingLeases)
      .where(and(isFenced, isOld));
    const uuids = found.map(({ uuid }) => uuid);
    await inChunks(uuids, ROWS_PER_STATEMENT, async (chunk) => {
      await this.#orm
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

  async insert(
    tx: Tx,
    claimable: Claimable,
    rows: readonly AnyRow[],
    options?: { skipExisting?: boolean },
  ): Promise<AnyRow[]> {
    // An error undoes only its statement. The savepoint undoes all of them, in case the body catches the
    // error.
    const ids = await (rows.length > 1
      ? ormOf(tx).transaction(async (savepoint) => this.#inserted(savepoint, claimable, rows, options))
      : this.#inserted(ormOf(tx), claimable, rows, options));
    const found = await inChunks(ids, ROWS_PER_STATEMENT, (chunk) => this.#byIds(tx, claimable, chunk));
    const stored = new Map(found.map((row) => [claimable.idOf(row), row]));
    return ids.map((id) => stored.get(String(id)) ?? notReadBack(claimable, id));
  }

  /** Answers the ids of the inserted rows. */
  async #inserted(
    on: Orm,
    claimable: Claimable,
    rows: readonly AnyRow[],
    options: { skipExisting?: boolean } | undefined,
  ): Promise<unknown[]> {
    const insert = new Insert(on, claimable, options);
    return inChunks(rows, ROWS_PER_STATEMENT, (chunk) => insert.run(chunk));
  }

  async read(tx: Tx, claimable: Claimable, ids: readonly unknown[]): Promise<AnyRow[]> {
    return inChunks(ids, ROWS_PER_STATEMENT, (chunk) => this.#byIds(tx, claimable, chunk));
  }

  async update(tx: Tx, claimable: Claimable, ids: readonly unknown[], set: AnyRow): Promise<AnyRow[]> {
    return inChunks(ids, ROWS_PER_STATEMENT, async (chunk) => {
      await ormOf(tx)
        .update(claimable.table as MySqlTable)
        .set(set)
        .where(inArray(claimable.idColumn, [...chunk]));
      return this.#byIds(tx, claimable, chunk);
    });
  }

  async delete(tx: Tx, { table, idColumn }: Claimable, ids: readonly unknown[]): Promise<number> {
    const counts = await inChunks(ids, ROWS_PER_STATEMENT, async (chunk) => {
      const deleted = ormOf(tx)
        .delete(table as MySqlTable)
        .where(inArray(idColumn, [...chunk]));
      return [await affectedRows(deleted)];
    });
    return counts.reduce((sum, count) => sum + count, 0);
  }

  async replaceDeferred(uuid: string, next: Deferred | undefined): Promise<boolean> {
    const its = and(this.savedLease(uuid), isNotNull(outstandingLeases.deferred));
    const found =
      next === undefined
        ? this.#orm.delete(outstandingLeases).where(its)
        : this.#orm.update(outstandingLeases).set({ uuid: next.uuid, deferred: next.batch }).where(its);
    return (await affectedRows(found)) > 0;
  }

  get readCommitted(): CellDatabase<Tx> {
    const { transaction = {}, ...options } = this.#options;
    return new MysqlDatabase(this.#db, {
      ...options,
      transaction: { ...transaction, isolationLevel: "read committed" },
    });
  }

  problemOf(
    error: unknown,
    tables: readonly Claimable[],
    written: Claimable | undefined,
  ): DatabaseProblem | undefined {
    const message = missingTableOf(error);
    const missing = ownTables.find((table) => message?.includes(table) === true);
    if (missing !== undefined) return { kind: "not_installed", table: missing };
    return duplicateIn(tables, error, written);
  }

  cascades(claimables: readonly Claimable[]): string[] {
    return cascadesOf(claimables, (table) => getTableConfig(table as MySqlTable).foreignKeys);
  }

  /**
   * A locking read. Otherwise a row that an update left unchanged would be read from the transaction's
   * snapshot.
   */
  async #byIds(tx: Tx, claimable: Claimable, ids: readonly unknown[]): Promise<AnyRow[]> {
    return ids.length === 0 ? [] : this.lock(tx, claimable, inArray(claimable.idColumn, [...ids]));
  }

  /**
   * READ COMMITTED reads no uncommitted rows and no old snapshot, and locks no gaps, whatever the server's
   * default.
   */
  #committed<T>(work: (tx: Orm) => Promise<T>): Promise<T> {
    return this.#db.transaction((tx) => work(ormOf(tx)), { isolationLevel: "read committed" });
  }

  protected override selectCommitted<Row>(query: (orm: SqlOrm) => Select<Row>): Promise<Row[]> {
    return this.#committed(async (tx) => query(sqlOrm(tx)));
  }

  get #orm(): Orm {
    return ormOf(this.#db);
  }
}

function notReadBack({ name, idName }: Claimable, id: unknown): never {
  throw invalidArgument(
    idName,
    `of ${name} was not stored as ${String(id)}, so the row cannot be claimed: use the database's spelling`,
  );
}
