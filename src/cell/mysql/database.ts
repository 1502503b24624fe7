import { and, asc, eq, gt, inArray, is, isNotNull, isNull, sql, type SQL } from "drizzle-orm";
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
import type { CellDatabase, Deferred, NewLocalLease, TransactionResult } from "../local.ts";
import type { LocalLease } from "../reconcile.ts";
import { requireOpen, runTransaction } from "../run-transaction.ts";
import { affectedRows, isSingleConnection } from "./driver.ts";
import { isAbort, isLockConflict } from "./failure.ts";
import { Insert, type Orm } from "./insert.ts";
import { migration, outstandingLeases, verificationQueue } from "./schema.ts";
import { endedEarly, isInTransaction, releaseSavepoint, setSavepoint, withLockWait } from "./session.ts";
import { MysqlVerification } from "./verification.ts";

type AnyRow = Readonly<Record<string, unknown>>;

/** A drizzle database on MySQL or MariaDB. */
export interface MysqlOrm<Tx> {
  transaction<T>(body: (tx: Tx) => Promise<T>, config?: MySqlTransactionConfig): Promise<T>;
}

export interface MysqlOptions {
  /**
   * Of the local transactions of claims: the server's default, usually REPEATABLE READ. READ COMMITTED is enough, and spares others the gaps
   * between rows that the former locks while a begin is under way.
   */
  transaction?: MySqlTransactionConfig;
  /** How long a fence waits for a local transaction that is about to save the lease: 2 s by default, in whole seconds. */
  fenceWaitMs?: number;
}

/** Statements of a size that is good for it, and far from `max_allowed_packet`. */
const ROWS_PER_STATEMENT = 1_000;

export class MysqlDatabase<Tx> implements CellDatabase<Tx> {
  readonly verification: MysqlVerification<Tx>;
  readonly #db: MysqlOrm<Tx>;
  readonly #options: MysqlOptions;

  constructor(db: MysqlOrm<Tx>, options: MysqlOptions = {}) {
    // Its end would be a savepoint's: the lease would be committed before the rows are.
    if (is(db, MySqlTransaction))
      throw invalidArgument("db", "must be the database, not a transaction of it");
    // On one connection, transactions that run at the same time are one: the COMMIT of each saves what the others have written so far.
    if (isSingleConnection(db))
      throw invalidArgument(
        "db",
        "must have a pool, not one connection: transactions that run at the same time would be one. Use drizzle(createPool(...))",
      );
    this.#db = db;
    this.#options = options;
    this.verification = new MysqlVerification((tx) => orm(tx ?? db));
  }

  async install(): Promise<void> {
    for (const statement of migration) await this.#orm.execute(sql.raw(statement));
  }

  /**
   * A deadlock undoes the whole transaction, and DDL and the like commit it. What comes after that is saved at once (MariaDB), or by COMMIT (MySQL
   * goes on with a new transaction): a lease without the rows that it is for. A savepoint does not outlive its transaction, so while it is there
   * nothing of the kind has happened.
   */
  async run<T>(body: (tx: Tx) => Promise<T>): Promise<TransactionResult<T>> {
    const guarded = async (tx: Tx): Promise<T> => {
      await setSavepoint(orm(tx));
      const value = await body(tx);
      await releaseSavepoint(orm(tx));
      return value;
    };
    const transaction = (work: (tx: Tx) => Promise<T>): Promise<T> =>
      this.#db.transaction(work, this.#options.transaction);
    return runTransaction({ transaction, body: guarded, isAbort });
  }

  async insertLease(tx: Tx, { uuid, sources, deferred }: NewLocalLease): Promise<void> {
    // Otherwise it would be saved at once, and no rollback would remove it.
    if (!(await isInTransaction(orm(tx)))) throw endedEarly();
    await orm(tx)
      .insert(outstandingLeases)
      .values({ uuid, sources, ...(deferred === undefined ? {} : { deferred }) });
  }

  async removeLease(tx: Tx, uuid: string): Promise<void> {
    await orm(tx)
      .delete(outstandingLeases)
      .where(and(isSaved, eq(outstandingLeases.uuid, uuid)));
  }

  /**
   * Where there is one connection, it is asked about. Of a pool's connections only the one that has written the row could show it before it is saved,
   * and that one has ended its transaction.
   */
  async look(uuid: string): Promise<{ isSaved: boolean; isInTransaction: boolean }> {
    if (await isInTransaction(this.#orm)) return { isSaved: false, isInTransaction: true };
    const its = and(isSaved, eq(outstandingLeases.uuid, uuid));
    const rows = await this.#orm.select({ uuid: outstandingLeases.uuid }).from(outstandingLeases).where(its);
    return { isSaved: rows.length > 0, isInTransaction: false };
  }

  async list({ afterUuid, limit }: { afterUuid: string; limit: number }): Promise<LocalLease[]> {
    const its = and(isSaved, isNull(outstandingLeases.deferred), isAfter(afterUuid));
    return this.#committed(async (tx) =>
      tx
        .select(leaseFields)
        .from(outstandingLeases)
        .where(its)
        .orderBy(asc(outstandingLeases.uuid))
        .limit(limit),
    );
  }

  async has(uuids: readonly string[]): Promise<LocalLease[]> {
    if (uuids.length === 0) return [];
    const its = and(isSaved, inArray(outstandingLeases.uuid, [...uuids]));
    return this.#committed(async (tx) => tx.select(leaseFields).from(outstandingLeases).where(its));
  }

  async remove(uuid: string): Promise<void> {
    await this.#orm.delete(outstandingLeases).where(and(isSaved, eq(outstandingLeases.uuid, uuid)));
  }

  /**
   * The insert waits for a local transaction that has written the same key and not ended yet: that is what makes it safe. A key that is there already
   * is locked by it, and with that lock its state is read. Of two fences that waited for one transaction, which was then rolled back, each has locked
   * the gap that the other needs: one of them is told of a deadlock, and may try again later.
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

  /** By their keys: a DELETE that has to search locks all that it passes, and waits for every local transaction in flight. */
  async removeFences(olderThanMs: number): Promise<number> {
    const isFenced = eq(outstandingLeases.state, "fenced");
    const isOld = sql`${ageMs} >= ${olderThanMs}`;
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
    const its = and(isSaved, eq(outstandingLeases.uuid, uuid));
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
    // An error undoes its statement only. Of several all must go, or a body that catches it would save rows that nobody knows of.
    const ids = await (rows.length > 1
      ? orm(tx).transaction(async (savepoint) => this.#inserted(savepoint, claimable, rows, options))
      : this.#inserted(orm(tx), claimable, rows, options));
    const found = await inChunks(ids, ROWS_PER_STATEMENT, (chunk) => this.#byIds(tx, claimable, chunk));
    const stored = new Map(found.map((row) => [claimable.idOf(row), row]));
    return ids.map((id) => stored.get(String(id)) ?? notReadBack(claimable, id));
  }

  /** Their ids. */
  async #inserted(
    on: Orm,
    claimable: Claimable,
    rows: readonly AnyRow[],
    options: { skipExisting?: boolean } | undefined,
  ): Promise<unknown[]> {
    const insert = new Insert(on, claimable, options);
    return inChunks(rows, ROWS_PER_STATEMENT, (chunk) => insert.run(chunk));
  }

  /** In one order, as far as the rows are found in it: two transactions over the same rows should wait for each other instead of for ever. */
  async lock(
    tx: Tx,
    { table, idColumn }: Claimable,
    where: SQL | undefined,
    limit?: number,
  ): Promise<AnyRow[]> {
    const rows = orm(tx)
      .select()
      .from(table as MySqlTable)
      .where(where)
      .orderBy(asc(idColumn))
      .$dynamic();
    return (limit === undefined ? rows : rows.limit(limit)).for("update");
  }

  async read(tx: Tx, claimable: Claimable, ids: readonly unknown[]): Promise<AnyRow[]> {
    return inChunks(ids, ROWS_PER_STATEMENT, (chunk) => this.#byIds(tx, claimable, chunk));
  }

  async update(tx: Tx, claimable: Claimable, ids: readonly unknown[], set: AnyRow): Promise<AnyRow[]> {
    return inChunks(ids, ROWS_PER_STATEMENT, async (chunk) => {
      await orm(tx)
        .update(claimable.table as MySqlTable)
        .set(set)
        .where(inArray(claimable.idColumn, [...chunk]));
      return this.#byIds(tx, claimable, chunk);
    });
  }

  async delete(tx: Tx, { table, idColumn }: Claimable, ids: readonly unknown[]): Promise<number> {
    const counts = await inChunks(ids, ROWS_PER_STATEMENT, async (chunk) => {
      const deleted = orm(tx)
        .delete(table as MySqlTable)
        .where(inArray(idColumn, [...chunk]));
      return [await affectedRows(deleted)];
    });
    return counts.reduce((sum, count) => sum + count, 0);
  }

  async listDeferred({ afterUuid, limit }: { afterUuid: string; limit: number }): Promise<Deferred[]> {
    const rows = await this.#committed(async (tx) =>
      tx
        .select({ uuid: outstandingLeases.uuid, batch: outstandingLeases.deferred })
        .from(outstandingLeases)
        .where(and(isSaved, isNotNull(outstandingLeases.deferred), isAfter(afterUuid)))
        .orderBy(asc(outstandingLeases.uuid))
        .limit(limit),
    );
    return rows.flatMap(({ uuid, batch }) => (batch === null ? [] : [{ uuid, batch }]));
  }

  async replaceDeferred(uuid: string, next: Deferred | undefined): Promise<boolean> {
    const its = and(isSaved, isNotNull(outstandingLeases.deferred), eq(outstandingLeases.uuid, uuid));
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

  cascades(claimables: readonly Claimable[]): string[] {
    return cascadesOf(claimables, (table) => getTableConfig(table as MySqlTable).foreignKeys);
  }

  /** A locking read: without a lock, a row that an update left as it was would be shown as it was when the transaction began to read. */
  async #byIds(tx: Tx, claimable: Claimable, ids: readonly unknown[]): Promise<AnyRow[]> {
    return ids.length === 0 ? [] : this.lock(tx, claimable, inArray(claimable.idColumn, [...ids]));
  }

  /** Neither what is not committed yet, which a server set to READ UNCOMMITTED would show, nor a view of the past, and no locks on gaps. */
  #committed<T>(work: (tx: Orm) => Promise<T>): Promise<T> {
    return this.#db.transaction((tx) => work(orm(tx)), { isolationLevel: "read committed" });
  }

  get #orm(): Orm {
    return orm(this.#db);
  }
}

/** What the drivers differ in is not used here. */
function orm(db: unknown): Orm {
  requireOpen(db);
  return db as Orm;
}

function notReadBack({ name, idName }: Claimable, id: unknown): never {
  throw invalidArgument(
    idName,
    `of ${name} was stored as something else than ${String(id)}: the row cannot be claimed`,
  );
}

const isSaved = eq(outstandingLeases.state, "saved");
const ageMs =
  sql`TIMESTAMPDIFF(MICROSECOND, ${outstandingLeases.createdAt}, UTC_TIMESTAMP(3)) / 1000`.mapWith(Number);
const isAfter = (uuid: string): SQL | undefined =>
  uuid === "" ? undefined : gt(outstandingLeases.uuid, uuid);
const isDeferred = sql`${outstandingLeases.deferred} IS NOT NULL`.mapWith(Boolean);
const leaseFields = { uuid: outstandingLeases.uuid, ageMs, isDeferred };
