import { and, asc, eq, getTableColumns, inArray, is, isNotNull, sql } from "drizzle-orm";
import {
  getTableConfig,
  PgTransaction,
  type PgColumn,
  type PgTable,
  type PgTransactionConfig,
} from "drizzle-orm/pg-core";
import { LeaseholdError } from "../../client/errors.ts";
import { cascadesOf } from "../cascades.ts";
import type { AnyRow, Claimable } from "../claimable.ts";
import { invalidArgument } from "../errors.ts";
import { inChunks } from "../in-chunks.ts";
import type { CellDatabase, DatabaseProblem, Deferred, NewLocalLease, TransactionResult } from "../local.ts";
import { runTransaction } from "../run-transaction.ts";
import { SqlDatabase } from "../sql/database.ts";
import { sqlOrm, type Select, type SqlOrm } from "../sql/orm.ts";
import { ageMsOf } from "./age.ts";
import { isAbort, isLockTimeout, missingTableOf, uniqueViolationOf } from "./failure.ts";
import { LeaseTable, oidByName, tableOid } from "./lease-table.ts";
import { refuseSingleClient } from "./pool.ts";
import { PostgresLedgerHistory } from "./ledger-history.ts";
import { ormOf, type Orm } from "./orm.ts";
import { migration, outstandingLeases, ownTables, verificationQueue } from "./schema.ts";
import { duplicateIn } from "./unique-keys.ts";
import { PostgresVerification } from "./verification.ts";

/** A drizzle database on PostgreSQL, whatever its driver. */
export interface PostgresOrm<Tx> {
  transaction<T>(body: (tx: Tx) => Promise<T>, config?: PgTransactionConfig): Promise<T>;
}

export interface PostgresOptions {
  /** Options of local transactions. PostgreSQL's default, READ COMMITTED, is enough. */
  transaction?: PgTransactionConfig;
  /** How long a fence waits for a local transaction that is saving the lease: 2 s by default. */
  fenceWaitMs?: number;
}

const ROWS_PER_STATEMENT = 1_000;

/**
 * Half of PostgreSQL's limit for a statement, because a value may be an expression with several parameters.
 */
const PARAMETERS_PER_STATEMENT = 32_767;

/**
 * Serializes installs, because concurrent CREATE TABLE IF NOT EXISTS can conflict. It is "leasehol" in ASCII.
 */
const INSTALL_LOCK = "7810756276994469740";

export class PostgresDatabase<Tx> extends SqlDatabase<Tx> implements CellDatabase<Tx> {
  readonly verification: PostgresVerification<Tx>;
  readonly ledgerHistory: PostgresLedgerHistory;
  readonly #db: PostgresOrm<Tx>;
  readonly #options: PostgresOptions;
  readonly #leaseTable: LeaseTable;

  constructor(db: PostgresOrm<Tx>, options: PostgresOptions = {}) {
    // Its COMMIT would only release a savepoint, so the lease would be committed before the rows.
    if (is(db, PgTransaction)) throw invalidArgument("db", "must be the database, not a transaction of it");
    refuseSingleClient(db);
    super(db, outstandingLeases, ageMsOf);
    this.#db = db;
    this.#options = options;
    this.verification = new PostgresVerification(db);
    this.ledgerHistory = new PostgresLedgerHistory(db);
    this.#leaseTable = new LeaseTable(async () => this.#oidOfLeases());
  }

  async install(): Promise<void> {
    await this.#db.transaction(
      async (tx) => {
        await ormOf(tx).execute(sql.raw(`SELECT pg_advisory_xact_lock(${INSTALL_LOCK})`));
        for (const statement of migration) await ormOf(tx).execute(sql.raw(statement));
      },
      // A stricter level would not see tables that were created while it waited.
      { isolationLevel: "read committed" },
    );
  }

  async run<T>(body: (tx: Tx) => Promise<T>): Promise<TransactionResult<T>> {
    try {
      await this.#leaseTable.prepare();
    } catch (error) {
      return { kind: "rolled_back", error };
    }
    const transaction = (work: (tx: Tx) => Promise<T>): Promise<T> =>
      this.#db.transaction(work, this.#options.transaction);
    return runTransaction({ transaction, body, isAbort });
  }

  async insertLease(tx: Tx, { uuid, sources, deferred }: NewLocalLease): Promise<void> {
    const [written] = await ormOf(tx)
      .insert(outstandingLeases)
      .values({ uuid, sources, ...(deferred === undefined ? {} : { deferred }) })
      .returning({ table: tableOid });
    this.#leaseTable.check(written?.table);
  }

  async look(uuid: string): Promise<{ isSaved: boolean; isInTransaction: boolean }> {
    const its = this.savedLease(uuid);
    const [seen] = await this.#orm
      .select({
        isInTransaction: sql<boolean>`pg_current_xact_id_if_assigned() IS NOT NULL`,
        isSaved: sql<boolean>`EXISTS (SELECT 1 FROM ${outstandingLeases} WHERE ${its})`,
      })
      .from(sql`(VALUES (1)) AS one`);
    if (seen === undefined) throw new Error("the database answered a SELECT without a row");
    return seen;
  }

  /**
   * Safe, because the insert waits for a local transaction that has written the same key and not ended yet.
   */
  async fence(uuid: string): Promise<"fenced" | "saved" | "in_flight"> {
    const waitMs = Math.max(1, Math.round(this.#options.fenceWaitMs ?? 2_000));
    try {
      return await this.#db.transaction(
        async (tx) => {
          await ormOf(tx).execute(sql.raw(`SET LOCAL lock_timeout = ${waitMs}`));
          await ormOf(tx)
            .insert(outstandingLeases)
            .values({ uuid, state: "fenced", sources: [] })
            .onConflictDoNothing();
          const [row] = await ormOf(tx)
            .select({ state: outstandingLeases.state })
            .from(outstandingLeases)
            .where(eq(outstandingLeases.uuid, uuid));
          return row?.state ?? "in_flight";
        },
        // A stricter level would not see the row that it waited for.
        { isolationLevel: "read committed" },
      );
    } catch (error) {
      if (isLockTimeout(error)) return "in_flight";
      throw error;
    }
  }

  async removeFences(olderThanMs: number): Promise<number> {
    const removed = await this.#orm
      .delete(outstandingLeases)
      .where(
        and(
          eq(outstandingLeases.state, "fenced"),
          sql`${ageMsOf(outstandingLeases.createdAt)} >= ${olderThanMs}`,
        ),
      )
      .returning({ uuid: outstandingLeases.uuid });
    return removed.length;
  }

  async queueForVerification(uuid: string): Promise<void> {
    await this.#db.transaction(async (tx) => {
      const [lease] = await ormOf(tx)
        .delete(outstandingLeases)
        .where(this.savedLease(uuid))
        .returning({ sources: outstandingLeases.sources });
      const rows = (lease?.sources ?? []).map(({ type, id }) => ({
        sourceType: type,
        sourceId: id,
        leaseUuid: uuid,
      }));
      if (rows.length === 0) return;
      const key = [verificationQueue.sourceType, verificationQueue.sourceId];
      await ormOf(tx)
        .insert(verificationQueue)
        .values(rows)
        .onConflictDoUpdate({ target: key, set: { leaseUuid: uuid } });
    });
  }

  async insert(
    tx: Tx,
    { table, name }: Claimable,
    rows: readonly AnyRow[],
    { skipExisting = false } = {},
  ): Promise<AnyRow[]> {
    const rowsPerStatement = Math.min(
      ROWS_PER_STATEMENT,
      Math.floor(PARAMETERS_PER_STATEMENT / Object.keys(getTableColumns(table)).length),
    );
    return inChunks(rows, rowsPerStatement, async (chunk) => {
      const insert = ormOf(tx)
        .insert(table as PgTable)
        .values(chunk as Record<string, never>[]);
      const stored = await (skipExisting ? insert.onConflictDoNothing() : insert).returning();
      if (!skipExisting && stored.length !== chunk.length)
        throw notStored(name, chunk.length - stored.length);
      return stored;
    });
  }

  async read(tx: Tx, { table, idColumn }: Claimable, ids: readonly unknown[]): Promise<AnyRow[]> {
    return inChunks(ids, ROWS_PER_STATEMENT, async (chunk) =>
      ormOf(tx)
        .select()
        .from(table as PgTable)
        .where(inArray(idColumn, [...chunk]))
        .orderBy(asc(idColumn)),
    );
  }

  async update(
    tx: Tx,
    { table, idColumn }: Claimable,
    ids: readonly unknown[],
    set: AnyRow,
  ): Promise<AnyRow[]> {
    return inChunks(ids, ROWS_PER_STATEMENT, async (chunk) =>
      ormOf(tx)
        .update(table as PgTable)
        .set(set as Record<string, never>)
        .where(inArray(idColumn, [...chunk]))
        .returning(),
    );
  }

  async delete(tx: Tx, { table, idColumn }: Claimable, ids: readonly unknown[]): Promise<number> {
    const deleted = await inChunks(ids, ROWS_PER_STATEMENT, async (chunk) =>
      ormOf(tx)
        .delete(table as PgTable)
        .where(inArray(idColumn, [...chunk]))
        .returning({ id: idColumn as PgColumn }),
    );
    return deleted.length;
  }

  async replaceDeferred(uuid: string, next: Deferred | undefined): Promise<boolean> {
    const its = and(this.savedLease(uuid), isNotNull(outstandingLeases.deferred));
    const uuidOnly = { uuid: outstandingLeases.uuid };
    const found =
      next === undefined
        ? this.#orm.delete(outstandingLeases).where(its).returning(uuidOnly)
        : this.#orm
            .update(outstandingLeases)
            .set({ uuid: next.uuid, deferred: next.batch })
            .where(its)
            .returning(uuidOnly);
    return (await found).length > 0;
  }

  get readCommitted(): CellDatabase<Tx> {
    const { transaction = {}, ...options } = this.#options;
    return new PostgresDatabase(this.#db, {
      ...options,
      transaction: { ...transaction, isolationLevel: "read committed" },
    });
  }

  problemOf(error: unknown, tables: readonly Claimable[]): DatabaseProblem | undefined {
    const message = missingTableOf(error);
    const missing = ownTables.find((table) => message?.includes(table) === true);
    if (missing !== undefined) return { kind: "not_installed", table: missing };
    const violation = uniqueViolationOf(error);
    return violation === undefined ? undefined : duplicateIn(tables, violation);
  }

  cascades(claimables: readonly Claimable[]): string[] {
    return cascadesOf(claimables, (table) => getTableConfig(table as PgTable).foreignKeys);
  }

  async #oidOfLeases(): Promise<string | null | undefined> {
    const [seen] = await this.#orm.select({ oid: oidByName }).from(sql`(VALUES (1)) AS one`);
    return seen?.oid;
  }

  protected override async selectCommitted<Row>(query: (orm: SqlOrm) => Select<Row>): Promise<Row[]> {
    return query(sqlOrm(this.#db));
  }

  get #orm(): Orm {
    return ormOf(this.#db);
  }
}

const notStored = (table: string, missing: number): Error =>
  new LeaseholdError(
    `the database did not insert ${missing} of the rows for ${table}, so their names cannot be claimed: ` +
      "check its triggers and rules",
    {
      code: "NOT_STORED",
    },
  );
