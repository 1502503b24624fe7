import { and, eq, isNotNull, sql, type SQL } from "drizzle-orm";
import { getTableConfig, type PgTable } from "drizzle-orm/pg-core";
import { declaredCascades } from "../cascades.ts";
import type { Claimable } from "../claimable.ts";
import { NotSavedError, transactionEnded } from "../errors.ts";
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
import { allOrNothing, SqlDatabase, SqlLedgerHistory, type HistoryRow } from "../sql/database.ts";
import type { AnyRow } from "../table.ts";
import { storedKeyParts, storedTraits } from "./catalog.ts";
import { ClaimableTables, leaseTable, tableOid, type KnownTable } from "./claimable-tables.ts";
import {
  duplicateIn,
  isAbort,
  isFailedTransaction,
  isLockTimeout,
  missingTableOf,
  uniqueViolationOf,
} from "./failure.ts";
import {
  ledgerHistory,
  migration,
  outstandingLeases,
  ownTables,
  verificationQueue,
  type Orm,
} from "./schema.ts";
import { ageMsOf, noteDeletions, PostgresVerification } from "./verification.ts";

class PostgresLedgerHistory extends SqlLedgerHistory<Orm> {
  constructor(connection: Connection<unknown, Orm>) {
    super(connection, ledgerHistory);
  }

  protected override upsert(orm: Orm, rows: HistoryRow[]): Promise<unknown> {
    return orm
      .insert(ledgerHistory)
      .values(rows)
      .onConflictDoUpdate({
        target: [ledgerHistory.cell, ledgerHistory.incarnation],
        set: { position: sql`excluded.position`, savedAt: sql`clock_timestamp()` },
        setWhere: sql`${ledgerHistory.position} < excluded.position`,
      });
  }
}

export interface PostgresDatabaseOptions<Config = TransactionConfig> {
  /** Options of local transactions. PostgreSQL's default, READ COMMITTED, is enough. */
  transaction?: Config;
  /** How long a fence waits for a local transaction that is saving the lease: 2 s by default. */
  fenceWaitMs?: number;
}

/**
 * Serializes installs, because concurrent CREATE TABLE IF NOT EXISTS can conflict. It is "leasehol" in ASCII.
 */
const INSTALL_LOCK = "7810756276994469740";

/** A setting of the transaction, which the database resets when the transaction ends. */
const MARK = "leasehold.transaction";
const isMarked = sql`coalesce(current_setting(${sql.raw(`'${MARK}'`)}, true) = 'open', false)`;

const json = (value: unknown): SQL =>
  value === undefined ? sql`NULL::jsonb` : sql`${JSON.stringify(value)}::jsonb`;

export class PostgresDatabase<Tx> extends SqlDatabase<Tx, Orm> implements CellDatabase<Tx> {
  readonly verification: PostgresVerification<Tx>;
  readonly ledgerHistory: PostgresLedgerHistory;
  readonly #options: PostgresDatabaseOptions;
  readonly #leaseTable: KnownTable;
  readonly #claimables: ClaimableTables<Tx>;

  constructor(
    parts: SqlParts<Tx, Orm>,
    options: PostgresDatabaseOptions,
    claimables = new ClaimableTables(parts.connection),
  ) {
    super(parts, { leases: outstandingLeases, ageMsOf, readsSnapshot: false, storedTraits });
    this.#options = options;
    this.verification = new PostgresVerification(parts, claimables, () => this.traits.clear());
    this.ledgerHistory = new PostgresLedgerHistory(parts.connection);
    this.#leaseTable = leaseTable(parts.connection);
    this.#claimables = claimables;
  }

  async install(): Promise<void> {
    await this.connection.transaction(
      async (tx) => {
        // Not every driver can read a result without a type.
        await this.#orm(tx).execute(sql.raw(`SELECT 1 FROM pg_advisory_xact_lock(${INSTALL_LOCK})`));
        for (const statement of migration) await this.#orm(tx).execute(sql.raw(statement));
      },
      // A stricter level would not see tables that were created while it waited.
      { isolationLevel: "read committed" },
    );
  }

  async run<T>(body: (tx: Tx) => Promise<T>): Promise<TransactionResult<T>> {
    try {
      await this.#leaseTable.prepare();
      await this.#claimables.prepare();
    } catch (error) {
      return { kind: "rolled_back", error };
    }
    const transaction = (work: (tx: Tx) => Promise<T>): Promise<T> =>
      this.connection.transaction(work, this.#options.transaction);
    return runTransaction({
      transaction,
      body,
      mark: this.#mark,
      isAbort: (error) => isAbort(error, this.connection.describeError),
    });
  }

  readonly #mark: TransactionMark<Tx> = {
    // Unlike a query, it allows SET TRANSACTION afterwards.
    set: async (tx) => {
      this.errors.begin(tx);
      await this.#orm(tx).execute(sql.raw(`SET LOCAL ${MARK} = 'open'`));
    },
    isGone: async (tx) => {
      try {
        const [seen] = await this.#orm(tx)
          .select({ isOpen: sql<boolean>`${isMarked}`.as("is_open") })
          .from(sql`(VALUES (1)) AS one`);
        return seen?.isOpen !== true;
      } catch (error) {
        // PostgreSQL would answer its COMMIT with ROLLBACK, and no error. Not every driver looks.
        throw this.#isRefusal(error) ? this.#notSaved(tx, error) : error;
      }
    },
    // Only if it is the cell's own statement that was refused: the application gets its own errors.
    undoneBy: (tx, error) =>
      this.errors.of(tx).includes(error) && this.#isRefusal(error) ? this.#notSaved(tx, error) : undefined,
  };

  /** A transaction that failed refuses every statement until it is rolled back. */
  #isRefusal(error: unknown): boolean {
    return isFailedTransaction(error, this.connection.describeError);
  }

  #notSaved(tx: Tx, refusal: unknown): NotSavedError {
    return new NotSavedError(this.errors.of(tx).findLast((error) => !this.#isRefusal(error)) ?? refusal);
  }

  /** Outside the transaction, the row would be saved at once, and no rollback would remove it. */
  async insertLease(tx: Tx, { uuid, sources, deferred }: NewLocalLease): Promise<void> {
    const [written] = await this.#orm(tx)
      .insert(outstandingLeases)
      .select(
        sql`SELECT ${uuid}::uuid, 'saved', ${json(sources)}, ${json(deferred)}, clock_timestamp()
          WHERE ${isMarked}`,
      )
      .returning({ table: tableOid });
    if (written === undefined) throw transactionEnded();
    this.#leaseTable.check(written.table);
  }

  async look(uuid: string): Promise<{ isSaved: boolean; isInTransaction: boolean }> {
    const its = this.savedLease(uuid);
    const [seen] = await this.#orm()
      .select({
        isInTransaction: sql<boolean>`pg_current_xact_id_if_assigned() IS NOT NULL`.as("is_in_transaction"),
        isSaved: sql<boolean>`EXISTS (SELECT 1 FROM ${outstandingLeases} WHERE ${its})`.as("is_saved"),
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
      return await this.connection.transaction(
        async (tx) => {
          await this.#orm(tx).execute(sql.raw(`SET LOCAL lock_timeout = ${waitMs}`));
          await this.#orm(tx)
            .insert(outstandingLeases)
            .values({ uuid, state: "fenced", sources: [] })
            .onConflictDoNothing();
          const [row] = await this.#orm(tx)
            .select({ state: outstandingLeases.state })
            .from(outstandingLeases)
            .where(eq(outstandingLeases.uuid, uuid));
          return row?.state ?? "in_flight";
        },
        // A stricter level would not see the row that it waited for.
        { isolationLevel: "read committed" },
      );
    } catch (error) {
      if (isLockTimeout(error, this.connection.describeError)) return "in_flight";
      throw error;
    }
  }

  /**
   * Avoids an error, because a transaction of postgres.js cannot go on after one, even with a savepoint.
   * ON CONFLICT DO NOTHING does not say which rows it left out, so none of them must stay.
   */
  async tryInsert(tx: Tx, claimable: Claimable, rows: readonly AnyRow[]): Promise<AnyRow[] | undefined> {
    // ON CONFLICT refuses every table with such a key.
    const traits = await this.traitsOf(tx, claimable);
    if (traits?.hasDeferrableKey === true) return this.insert(tx, claimable, rows);
    const insert = async (): Promise<AnyRow[] | undefined> => {
      const stored = await this.insertRows(tx, claimable, rows, { skipExisting: true });
      return stored.length === rows.length ? stored : undefined;
    };
    return rows.length <= 1 ? insert() : allOrNothing(this.#orm(tx), insert);
  }

  override async delete(tx: Tx, claimable: Claimable, ids: readonly unknown[]): Promise<number> {
    const count = await super.delete(tx, claimable, ids);
    // A trigger may have kept some of the rows.
    if (count === ids.length && (await this.traitsOf(tx, claimable))?.hasPolicies === true)
      await noteDeletions(this.#orm(tx), claimable, ids);
    return count;
  }

  async mayHave(): Promise<boolean> {
    return true;
  }

  async removeFences(olderThanMs: number): Promise<number> {
    const removed = await this.#orm()
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
    await this.connection.transaction(async (tx) => {
      const [lease] = await this.#orm(tx)
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
      await this.#orm(tx)
        .insert(verificationQueue)
        .values(rows)
        .onConflictDoUpdate({ target: key, set: { leaseUuid: uuid } });
    });
  }

  async replaceDeferred(uuid: string, next: Deferred | undefined): Promise<boolean> {
    const its = and(this.savedLease(uuid), isNotNull(outstandingLeases.deferred));
    const uuidOnly = { uuid: outstandingLeases.uuid };
    const found =
      next === undefined
        ? this.#orm().delete(outstandingLeases).where(its).returning(uuidOnly)
        : this.#orm()
            .update(outstandingLeases)
            .set({ uuid: next.uuid, deferred: next.batch })
            .where(its)
            .returning(uuidOnly);
    return (await found).length > 0;
  }

  get readCommitted(): CellDatabase<Tx> {
    const { transaction = {}, ...options } = this.#options;
    const config = { ...transaction, isolationLevel: "read committed" as const };
    return new PostgresDatabase(this.parts, { ...options, transaction: config }, this.#claimables);
  }

  async problemOf(error: unknown, tables: readonly Claimable[]): Promise<DatabaseProblem | undefined> {
    const { describeError } = this.connection;
    const message = missingTableOf(error, describeError);
    const missing = ownTables.find((table) => message?.includes(table) === true);
    if (missing !== undefined) return { kind: "not_installed", table: missing };
    const violation = uniqueViolationOf(error, describeError);
    if (violation === undefined) return undefined;
    return duplicateIn(await sqlTablesOf(this.parts.tables, tables), violation, (table, key) =>
      storedKeyParts(this.#orm(), table, key),
    );
  }

  override async storedFaults(claimables: readonly Claimable[]): Promise<string[]> {
    const tables = await sqlTablesOf(this.parts.tables, claimables);
    for (const table of tables) await this.#claimables.add(table);
    return super.storedFaults(claimables);
  }

  cascades(claimables: readonly Claimable[]): string[] {
    // Tables that are not declared have only those of the database.
    if (this.parts.foreignKeys !== undefined) return [];
    return declaredCascades(claimables, (table) => getTableConfig(table as PgTable).foreignKeys);
  }

  protected override ofTable(claimable: Claimable, rows: readonly AnyRow[]): AnyRow[] {
    return this.#claimables.checked(claimable, rows);
  }

  protected override async selectCommitted<Row>(query: (orm: SqlOrm) => Select<Row>): Promise<Row[]> {
    return query(sqlOrm(this.connection.orm()));
  }

  #orm(tx?: Tx): Orm {
    return this.connection.orm(tx);
  }
}
