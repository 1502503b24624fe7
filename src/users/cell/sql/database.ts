import {
  and,
  asc,
  eq,
  getTableColumns,
  gt,
  inArray,
  isNotNull,
  isNull,
  lte,
  sql,
  type Column,
  type SQL,
  type Table,
} from "drizzle-orm";
import { LeaseholdError } from "../../client/errors.ts";
import type { LedgerPoint } from "../../client/ledger-history.ts";
import { storedCascades } from "../cascades.ts";
import { inChunks } from "../chunks.ts";
import type { Claimable } from "../claimable.ts";
import { causesOf } from "../errors.ts";
import type { Deferred, FailedWrite, Selection } from "../local.ts";
import type { LocalLease } from "../reconcile.ts";
import type { LedgerHistoryTable } from "../saved-history.ts";
import { declaredColumns, type AnyRow } from "../table.ts";
import {
  sqlOrm,
  sqlTablesOf,
  type Connection,
  type Fields,
  type RowMethods,
  type Select,
  type SqlOrm,
  type SqlParts,
  type SqlTable,
} from "./connection.ts";
import { isUniqueKey, storedFault, type StoredTraits } from "./unique-keys.ts";

/** Remembers the errors of the cell's own statements about rows, by transaction, and what they wrote. */
class StatementErrors<Tx> {
  readonly #errors = new WeakMap<WeakKey, unknown[]>();
  readonly #writes = new WeakMap<WeakKey, FailedWrite>();

  /** Forgets those of an earlier transaction. Some drivers use the same object for each on a connection. */
  begin(tx: Tx): void {
    this.#errors.set(tx as WeakKey, []);
  }

  of(tx: Tx): readonly unknown[] {
    return this.#errors.get(tx as WeakKey) ?? [];
  }

  writeOf(error: unknown): FailedWrite | undefined {
    return [...causesOf(error)].map((cause) => this.#writes.get(cause)).find(Boolean);
  }

  noting(rows: RowMethods<Tx>): RowMethods<Tx> {
    return {
      insert: (tx, claimable, given, options) => {
        const ids = given.map((row) => row[claimable.idName]);
        return this.#note(tx, rows.insert(tx, claimable, given, options), writeTo(claimable, ids));
      },
      select: (tx, ...given) => this.#note(tx, rows.select(tx, ...given)),
      update: (tx, claimable, ids, set) =>
        this.#note(tx, rows.update(tx, claimable, ids, set), writeTo(claimable, ids)),
      delete: (tx, ...given) => this.#note(tx, rows.delete(tx, ...given)),
    };
  }

  async #note<T>(tx: Tx | undefined, statement: Promise<T>, write?: FailedWrite): Promise<T> {
    try {
      return await statement;
    } catch (error) {
      if (tx !== undefined) this.#errors.get(tx as WeakKey)?.push(error);
      if (write !== undefined && error instanceof Error) this.#writes.set(error, write);
      throw error;
    }
  }
}

const writeTo = (claimable: Claimable, ids: readonly unknown[]): FailedWrite => ({
  claimable,
  id: ids.length === 1 ? ids[0] : undefined,
});

/**
 * Throws if an id, subject or scope may have been rounded. The driver is asked only if a row has a `bigint`
 * that a number could not hold: an ORM may have made it of a number of the driver.
 */
export async function checkExact(
  claimable: Claimable,
  rows: readonly AnyRow[],
  rounds: () => Promise<boolean>,
): Promise<void> {
  const isRounding = rows.some((row) => claimable.hasLarge(row)) && (await rounds());
  for (const row of rows) claimable.checkExact(row, isRounding);
}

/** Whether the driver reads integers of 64 bits as numbers, which cannot hold 2^53 + 1. */
export async function roundsIntegers(orm: unknown): Promise<boolean> {
  const [read] = await sqlOrm(orm)
    .select<{ value: unknown }>({ value: sql`9007199254740993`.as("large_integer") })
    .from(sql`(SELECT 1) AS one`);
  return typeof read?.value === "number";
}

const SAVEPOINT = "leasehold_write";

/**
 * Undoes the writes of `work` if it fails or answers undefined. No other statement of the transaction may
 * come between them.
 */
export async function allOrNothing<T>(
  tx: { execute(statement: SQL): PromiseLike<unknown> },
  work: () => Promise<T>,
): Promise<T> {
  await tx.execute(sql.raw(`SAVEPOINT ${SAVEPOINT}`));
  try {
    const value = await work();
    if (value === undefined) await tx.execute(sql.raw(`ROLLBACK TO SAVEPOINT ${SAVEPOINT}`));
    await tx.execute(sql.raw(`RELEASE SAVEPOINT ${SAVEPOINT}`));
    return value;
  } catch (error) {
    // A deadlock has undone the whole transaction, and the savepoint with it.
    await Promise.resolve(tx.execute(sql.raw(`ROLLBACK TO SAVEPOINT ${SAVEPOINT}`))).catch(() => {});
    throw error;
  }
}

/** The table of outstanding leases, as a dialect declares it. */
type OutstandingLeases = Table & Record<"uuid" | "state" | "deferred" | "createdAt", Column>;

interface LeasePage {
  afterUuid: string;
  limit: number;
}

interface Dialect<Orm> {
  leases: OutstandingLeases;
  ageMsOf: (time: Column) => SQL<number>;
  /** Whether a transaction sees the current state of rows only with a lock, because it reads a snapshot. */
  readsSnapshot: boolean;
  /** Reads what only the database knows about a table. Undefined if it does not exist. */
  storedTraits: (orm: Orm, table: SqlTable) => Promise<StoredTraits | undefined>;
}

/** Also far below MySQL's `max_allowed_packet`. */
export const ROWS_PER_STATEMENT = 1_000;

/** Half of the databases' limit, because a value may be an expression with several parameters. */
const PARAMETERS_PER_STATEMENT = 32_767;

/** What is the same in all dialects: rows of claimable tables, and most statements about leases. */
export abstract class SqlDatabase<Tx, Orm> {
  protected readonly parts: SqlParts<Tx, Orm>;
  protected readonly connection: Connection<Tx, Orm>;
  protected readonly rows: RowMethods<Tx>;
  protected readonly errors = new StatementErrors<Tx>();
  protected readonly traits = new Map<Claimable, StoredTraits>();
  readonly #dialect: Dialect<Orm>;
  readonly #isSaved: SQL;
  /** Whether the driver reads integers of 64 bits as numbers. Undefined until it was asked. */
  #isRounding: boolean | undefined;
  readonly #fields: Fields<LocalLease>;

  constructor(parts: SqlParts<Tx, Orm>, dialect: Dialect<Orm>) {
    this.parts = parts;
    this.connection = parts.connection;
    this.rows = this.errors.noting(parts.rows);
    this.#dialect = dialect;
    const { leases, ageMsOf } = dialect;
    this.#isSaved = eq(leases.state, "saved");
    const isDeferred = sql`${leases.deferred} IS NOT NULL`.mapWith(Boolean).as("is_deferred");
    this.#fields = { uuid: leases.uuid, ageMs: ageMsOf(leases.createdAt).as("age_ms"), isDeferred };
  }

  /** Reads no uncommitted rows and no old snapshot, whatever the server's default isolation level is. */
  protected abstract selectCommitted<R>(query: (orm: SqlOrm) => Select<R>): Promise<R[]>;

  /** Matches the row of a saved lease. */
  protected savedLease(uuid: string): SQL | undefined {
    return and(this.#isSaved, eq(this.#dialect.leases.uuid, uuid));
  }

  async removeLease(tx: Tx, uuid: string): Promise<void> {
    await sqlOrm(this.connection.orm(tx)).delete(this.#dialect.leases).where(this.savedLease(uuid));
  }

  async remove(uuid: string): Promise<void> {
    await sqlOrm(this.connection.orm()).delete(this.#dialect.leases).where(this.savedLease(uuid));
  }

  async list(page: LeasePage): Promise<LocalLease[]> {
    return this.#page(this.#fields, isNull(this.#dialect.leases.deferred), page);
  }

  async listDeferred(page: LeasePage): Promise<Deferred[]> {
    const { uuid, deferred } = this.#dialect.leases;
    return this.#page<Deferred>({ uuid, batch: deferred }, isNotNull(deferred), page);
  }

  async #page<R>(fields: Fields<R>, its: SQL, { afterUuid, limit }: LeasePage): Promise<R[]> {
    const { uuid } = this.#dialect.leases;
    const isAfter = afterUuid === "" ? undefined : gt(uuid, afterUuid);
    return this.selectCommitted((orm) =>
      orm
        .select(fields)
        .from(this.#dialect.leases)
        .where(and(this.#isSaved, its, isAfter))
        .orderBy(asc(uuid))
        .limit(limit),
    );
  }

  async has(uuids: readonly string[]): Promise<LocalLease[]> {
    if (uuids.length === 0) return [];
    const { leases } = this.#dialect;
    const its = and(this.#isSaved, inArray(leases.uuid, [...uuids]));
    return this.selectCommitted((orm) => orm.select(this.#fields).from(leases).where(its));
  }

  async insert(tx: Tx, claimable: Claimable, rows: readonly AnyRow[]): Promise<AnyRow[]> {
    const stored = await this.insertRows(tx, claimable, rows, { skipExisting: false });
    if (stored.length !== rows.length) throw notStored(claimable.name, rows.length - stored.length);
    return stored;
  }

  protected async insertRows(
    tx: Tx,
    claimable: Claimable,
    rows: readonly AnyRow[],
    options: { skipExisting: boolean },
  ): Promise<AnyRow[]> {
    await this.#exact(tx, claimable, rows);
    const stored = await inChunks(rows, rowsPerStatement(claimable, rows), (chunk) =>
      this.rows.insert(tx, claimable, chunk, options),
    );
    return this.#exact(tx, claimable, stored);
  }

  async lock(tx: Tx, claimable: Claimable, rows: Selection, limit?: number): Promise<AnyRow[]> {
    const found = await this.rows.select(tx, claimable, rows, { limit, isLocking: true });
    return this.#exact(tx, claimable, found);
  }

  async read(tx: Tx, claimable: Claimable, ids: readonly unknown[]): Promise<AnyRow[]> {
    const options = { isLocking: this.#dialect.readsSnapshot };
    const rows = await inChunks(ids, ROWS_PER_STATEMENT, (chunk) =>
      this.rows.select(tx, claimable, { ids: chunk }, options),
    );
    return this.#exact(tx, claimable, rows);
  }

  async update(tx: Tx, claimable: Claimable, ids: readonly unknown[], set: AnyRow): Promise<AnyRow[]> {
    await this.#exact(tx, claimable, [set]);
    const rows = await inChunks(ids, ROWS_PER_STATEMENT, (chunk) =>
      this.rows.update(tx, claimable, chunk, set),
    );
    return this.ofTable(claimable, rows);
  }

  /** Throws if rows are of another table. Answers them without what tells it. */
  protected ofTable(_claimable: Claimable, rows: readonly AnyRow[]): AnyRow[] {
    return [...rows];
  }

  /** Every row of the application passes here, whatever the driver: before a write, and after a read. */
  async #exact(tx: Tx, claimable: Claimable, given: readonly AnyRow[]): Promise<AnyRow[]> {
    const rows = this.ofTable(claimable, given);
    const rounds = async () => (this.#isRounding ??= await roundsIntegers(this.connection.orm(tx)));
    await checkExact(claimable, rows, rounds);
    return rows;
  }

  async delete(tx: Tx, claimable: Claimable, ids: readonly unknown[]): Promise<number> {
    const counts = await inChunks(ids, ROWS_PER_STATEMENT, async (chunk) => [
      await this.rows.delete(tx, claimable, chunk),
    ]);
    return counts.reduce((sum, count) => sum + count, 0);
  }

  async storedFaults(claimables: readonly Claimable[]): Promise<string[]> {
    const faults: string[] = [];
    for (const table of await sqlTablesOf(this.parts.tables, claimables)) {
      const traits = await this.#readTraits(undefined, table);
      const fault = traits && storedFault(table, traits);
      if (fault !== undefined) faults.push(fault);
    }
    return faults;
  }

  async storedCascades(claimables: readonly Claimable[]): Promise<string[]> {
    const { foreignKeys } = this.parts;
    return foreignKeys === undefined ? [] : storedCascades(claimables, foreignKeys);
  }

  async isUniqueKey(tx: Tx, claimable: Claimable, key: readonly string[]): Promise<boolean> {
    const its = await this.parts.tables.of(tx, claimable);
    const columns = key.map((name) => getTableColumns(its.table)[name]?.name ?? name);
    const isOne = (traits: StoredTraits | undefined) => traits !== undefined && isUniqueKey(traits, columns);
    // A migration may have added the key since the traits were read.
    return isOne(this.traits.get(claimable)) || isOne(await this.#readTraits(tx, its));
  }

  writeOf(error: unknown): FailedWrite | undefined {
    return this.errors.writeOf(error);
  }

  /** What was known at the cell's first use. */
  protected async traitsOf(tx: Tx, claimable: Claimable): Promise<StoredTraits | undefined> {
    return this.traits.get(claimable) ?? this.#readTraits(tx, await this.parts.tables.of(tx, claimable));
  }

  async #readTraits(tx: Tx | undefined, table: SqlTable): Promise<StoredTraits | undefined> {
    const traits = await this.#dialect.storedTraits(this.connection.orm(tx), table);
    if (traits !== undefined) this.traits.set(table.claimable, traits);
    return traits;
  }
}

function rowsPerStatement({ table }: Claimable, rows: readonly AnyRow[]): number {
  const declared = Object.keys(declaredColumns(table) ?? {}).length;
  const given = rows.reduce((most, row) => Math.max(most, Object.keys(row).length), 1);
  return Math.min(ROWS_PER_STATEMENT, Math.floor(PARAMETERS_PER_STATEMENT / Math.max(declared, given)));
}

const notStored = (table: string, missing: number): Error =>
  new LeaseholdError(
    `the database did not insert ${missing} of the rows for ${table}, so their names cannot be claimed: ` +
      "check its triggers and rules",
    { code: "NOT_STORED" },
  );

type HistoryTable = Table & Record<"cell" | "incarnation" | "position", Column>;

export interface HistoryRow extends LedgerPoint {
  cell: string;
}

/**
 * The table of what a cell has seen of its ledger. All processes of the cell share it, so rows only move
 * forward. No statement runs in a transaction of the application, so nothing waits for the rows' locks for
 * longer than one statement.
 */
export abstract class SqlLedgerHistory<Orm> implements LedgerHistoryTable {
  readonly #connection: Connection<unknown, Orm>;
  readonly #table: HistoryTable;

  constructor(connection: Connection<unknown, Orm>, table: HistoryTable) {
    this.#connection = connection;
    this.#table = table;
  }

  /** Inserts rows. A row that exists keeps the larger position. */
  protected abstract upsert(orm: Orm, rows: HistoryRow[]): Promise<unknown>;

  async load(cell: string): Promise<LedgerPoint[]> {
    const { incarnation, position } = this.#table;
    return sqlOrm(this.#connection.orm())
      .select<LedgerPoint>({ incarnation, position })
      .from(this.#table)
      .where(eq(this.#table.cell, cell));
  }

  async save(cell: string, points: readonly LedgerPoint[]): Promise<void> {
    await this.upsert(
      this.#connection.orm(),
      points.map((point) => ({ cell, ...point })),
    );
  }

  async remove(cell: string, points: readonly LedgerPoint[]): Promise<void> {
    const { cell: itsCell, incarnation, position } = this.#table;
    for (const point of points)
      await sqlOrm(this.#connection.orm())
        .delete(this.#table)
        .where(and(eq(itsCell, cell), eq(incarnation, point.incarnation), lte(position, point.position)));
  }
}
