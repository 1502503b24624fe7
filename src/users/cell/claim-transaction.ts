import { and, eq } from "drizzle-orm";
import { v7 as uuidv7 } from "uuid";
import { isLeaseholdError, type LeaseholdError } from "../client/errors.ts";
import type { Positions } from "../router/positions.ts";
import { Changes, type ClaimBatch } from "./changes.ts";
import { chunksOf, type ChunkLimits } from "./chunks.ts";
import type { Claimable } from "./claimable.ts";
import { invalidArgument } from "./errors.ts";
import type { CellDatabase, Deferred } from "./local.ts";
import {
  declaredColumns,
  type AnyRow,
  type AnyTable,
  type NewRow,
  type Row,
  type RowUpdate,
  type Where,
} from "./table.ts";
import type { ClaimableTables } from "./tables.ts";

export interface TransactionOptions {
  /** Ends the wait for the begin. The local transaction is then rolled back. */
  signal?: AbortSignal | undefined;
  /**
   * Called once the rows are saved, before the call resolves, with the positions from which on routers show
   * what the lease changed. Not called without a lease. Bulk changes call it for each chunk. Errors that it
   * throws are ignored, because the rows are saved.
   *
   * @example
   * ```ts
   * import { positionCookie } from "leasehold/cell";
   *
   * const headers = new Headers({ location: "/ada" });
   * await cell.transaction((tx) => tx.insert(users, { username: "ada" }), {
   *   onPositions: (positions) => headers.append("set-cookie", positionCookie(positions, 5)),
   * });
   * const response = new Response(null, { status: 303, headers });
   * ```
   */
  onPositions?: ((positions: Positions) => void) | undefined;
}

/** How often an upsert looks for its row, and inserts it if it is missing. */
const UPSERT_ATTEMPTS = 3;

/** How many deleted rows share a deferred lease. */
const DEFERRED_ROWS = 500;

/**
 * A local transaction that records which claimed rows it changes. Use its methods for claimed tables. `db` is
 * the driver's or ORM's own transaction, for everything else. Before you change claimed rows with `db`, call
 * `lock`, and after you insert some, `inserted`. At the end, all these rows are read from the database again.
 */
export class ClaimTransaction<Tx> {
  readonly db: Tx;
  readonly changes: Changes;
  /** Leases to begin after the transaction. */
  readonly deferred: Deferred[] = [];
  readonly #database: CellDatabase<Tx>;
  readonly #tables: ClaimableTables;
  readonly #chunk: ChunkLimits;
  /** The writes that have not ended. */
  readonly #underWay = new Set<Promise<unknown>>();
  #latest: Promise<unknown> = Promise.resolve();
  #isOver = false;
  /** Why the transaction must not be committed: rows may be stored whose claims are not known. */
  #refused: LeaseholdError | undefined;

  /** Created by `Cell.transaction`. */
  constructor(db: Tx, database: CellDatabase<Tx>, tables: ClaimableTables, chunk: ChunkLimits) {
    this.db = db;
    this.changes = new Changes(tables.types);
    this.#database = database;
    this.#tables = tables;
    this.#chunk = chunk;
  }

  /** Inserts a row and claims its names. Answers the stored row, with its id. */
  async insert<T extends AnyTable>(table: T, row: NewRow<T>): Promise<Row<T>> {
    if (Array.isArray(row)) throw invalidArgument("row", "must be one row: use insertMany for several");
    const [stored] = await this.insertRows(this.#tables.of(table), [row as AnyRow]);
    return stored as Row<T>;
  }

  /** Inserts rows and claims their names. Answers the stored rows, with their ids. */
  async insertMany<T extends AnyTable>(table: T, rows: readonly NewRow<T>[]): Promise<Row<T>[]> {
    if (!Array.isArray(rows)) throw invalidArgument("rows", "must be an array: use insert for one row");
    return await this.insertRows(this.#tables.of(table), rows as readonly AnyRow[]);
  }

  /** Updates the rows that match `where`. One lease releases the old names and claims the new ones. */
  async update<T extends AnyTable>(table: T, where: Where<T>, set: RowUpdate<T>): Promise<Row<T>[]> {
    const claimable = this.#tables.of(table);
    return this.#writing(async () => {
      const before = await this.#database.lock(this.db, claimable, { where });
      return this.#updateRows(claimable, before, set as AnyRow);
    });
  }

  /** Deletes the rows that match `where` and releases their names. Answers the deleted rows. */
  async delete<T extends AnyTable>(table: T, where: Where<T>): Promise<Row<T>[]> {
    const claimable = this.#tables.of(table);
    return this.#writing(async () => {
      const before = await this.#database.lock(this.db, claimable, { where });
      await this.#deleteRows(claimable, before);
      return before;
    });
  }

  /**
   * Deletes any number of rows, and releases their names after this transaction is saved, in leases of 500
   * rows. Until then nobody else can claim the names. After a crash, reconciliation continues. Answers the
   * number of rows.
   */
  async deleteLater<T extends AnyTable>(table: T, where: Where<T>): Promise<number> {
    const claimable = this.#tables.of(table);
    return this.#writing(async () => {
      const before = await this.#database.lock(this.db, claimable, { where });
      const limits = { ...this.#chunk, records: Math.min(DEFERRED_ROWS, this.#chunk.records) };
      const batches = [...chunksOf(before, claimable, limits)].flatMap(
        (rows) => this.#batchOf(claimable, rows) ?? [],
      );
      await this.#deleteAll(claimable, before);
      const ids = before.map((row) => claimable.idOf(row));
      if (ids.length > 0)
        await this.#database.verification
          .checkGone(this.db, claimable, ids, true)
          .catch((error: unknown) => this.#refuse(error));
      try {
        for (const claimed of batches) await this.#defer(claimed);
      } catch (error) {
        // If the body has ended its transaction, these rows are gone, and their claims are not.
        for (const row of before) this.changes.add(claimable, row, undefined);
        throw error;
      }
      return before.length;
    });
  }

  /**
   * Inserts a row, or updates the row that has the same values in a unique key. Answers the stored row. Use
   * it in place of `ON CONFLICT DO UPDATE`, `ON DUPLICATE KEY UPDATE` or `REPLACE`, which don't tell which
   * names the row had before.
   *
   * @param key - The columns of a unique key of all rows. It must compare the columns themselves rather than
   * an expression such as `lower(email)`.
   * @param set - The new values of a row that exists. By default those of `row`, without its key and its id.
   * @throws `InvalidArgumentError` if no unique key consists of exactly these columns, and the database's
   * error if the row violates another unique key. On MySQL and MariaDB, also a deadlock if three or more
   * transactions insert the same row at once: run the transaction again.
   *
   * @example
   * ```ts
   * await cell.transaction((tx) =>
   *   tx.upsert(users, ["externalId"], { externalId: "ldap-7", username: "ada" }),
   * );
   * ```
   */
  async upsert<T extends AnyTable>(
    table: T,
    key: readonly (keyof NewRow<T> & string)[],
    row: NewRow<T>,
    set?: RowUpdate<T>,
  ): Promise<Row<T>> {
    const claimable = this.#tables.of(table);
    const given = row as AnyRow;
    const values = keyValues(key, given);
    const update = (set ?? withoutColumns(given, [...key, claimable.idName])) as AnyRow;
    const where = keyCondition(claimable, values);
    return this.#writing(async () => {
      if (key.length === 0 || !(await this.#database.isUniqueKey(this.db, claimable, key)))
        throw noUniqueKey(claimable, key);
      for (let attempt = 1; ; attempt += 1) {
        const mayExist = attempt > 1 || (await this.#database.mayHave(this.db, claimable, where));
        const found = mayExist ? await this.#database.lock(this.db, claimable, { where }) : [];
        // Only if the key was dropped after the cell's first use.
        if (found.length > 1) throw noUniqueKey(claimable, key);
        const isUnchanged = Object.values(update).every((value) => value === undefined);
        const [stored] = isUnchanged ? found : await this.#updateRows(claimable, found, update);
        if (stored !== undefined) return stored;
        // If it fails, another transaction has inserted the row meanwhile, or it violates another key.
        const isLast = attempt === UPSERT_ATTEMPTS;
        const inserted = await this.#insertRows(claimable, [given], isLast ? "insert" : "tryInsert");
        if (inserted !== undefined) return inserted[0] as Row<T>;
      }
    });
  }

  /**
   * Locks the rows that match `where`, and answers them. Call it before you update or delete them with `db`.
   * At the end of the transaction they are read again, and their names are claimed or released.
   *
   * @example
   * ```ts
   * await cell.transaction(async (tx) => {
   *   await tx.lock(users, eq(users.teamId, 7));
   *   await tx.db.execute(sql`UPDATE users SET username = username || '-old' WHERE team_id = 7`);
   * });
   * ```
   */
  async lock<T extends AnyTable>(table: T, where: Where<T>): Promise<Row<T>[]> {
    const claimable = this.#tables.of(table);
    return this.#writing(async () => {
      const rows = await this.#database.lock(this.db, claimable, { where });
      for (const row of rows) this.changes.add(claimable, row, row);
      return rows;
    });
  }

  /** Reports a row that was inserted with `db`, so that its names are claimed. It needs its id. */
  inserted<T extends AnyTable>(table: T, row: Row<T>): void {
    this.#check();
    try {
      this.changes.add(this.#tables.of(table), undefined, row as AnyRow);
    } catch (error) {
      this.#refuse(error);
    }
  }

  /** @internal Runs the body, then checks that its writes have ended, and reads the changed rows again. */
  async run<T>(body: () => Promise<T>): Promise<T> {
    let value: T;
    const unawaited = async (): Promise<boolean> => {
      this.#isOver = true;
      const { size } = this.#underWay;
      // A write has several statements. After COMMIT or ROLLBACK, the rest would be saved without a lease.
      await Promise.allSettled(this.#underWay);
      return size > 0;
    };
    try {
      value = await body();
    } catch (error) {
      await unawaited();
      throw error;
    }
    if (await unawaited())
      throw invalidArgument("transaction", "ended before its writes: await every call of tx");
    if (this.#refused !== undefined) throw this.#refused;
    const { verification } = this.#database;
    await this.changes.refresh(
      (claimable, ids) => this.#database.read(this.db, claimable, ids),
      (claimable, ids, isDeleted) => verification.checkGone(this.db, claimable, ids, isDeleted),
    );
    return value;
  }

  /** @internal */
  async insertRows(claimable: Claimable, rows: readonly AnyRow[]): Promise<AnyRow[]> {
    return (await this.#writing(() => this.#insertRows(claimable, rows, "insert"))) ?? [];
  }

  /** @internal Undefined if a unique key refused one of the rows, so that none is stored. */
  tryInsertRows(claimable: Claimable, rows: readonly AnyRow[]): Promise<AnyRow[] | undefined> {
    return this.#writing(() => this.#insertRows(claimable, rows, "tryInsert"));
  }

  async #insertRows(
    claimable: Claimable,
    rows: readonly AnyRow[],
    how: "insert" | "tryInsert",
  ): Promise<AnyRow[] | undefined> {
    if (rows.length === 0) return [];
    try {
      const stored = await this.#database[how](this.db, claimable, rows);
      for (const row of stored ?? []) this.changes.add(claimable, undefined, row);
      return stored;
    } catch (error) {
      return this.#refuse(error);
    }
  }

  /** @internal */
  updateRows(claimable: Claimable, before: readonly AnyRow[], set: AnyRow): Promise<AnyRow[]> {
    return this.#writing(() => this.#updateRows(claimable, before, set));
  }

  async #updateRows(claimable: Claimable, before: readonly AnyRow[], set: AnyRow): Promise<AnyRow[]> {
    if (before.length === 0) return [];
    const { idName } = claimable;
    if (idName in set)
      throw invalidArgument(
        idName,
        `of ${claimable.name} cannot be set, because a claimed row keeps its id: insert a new row instead`,
      );
    // Recorded before the write, so that an error that the body catches cannot hide a change.
    for (const row of before) this.changes.add(claimable, row, row);
    const ids = before.map((row) => row[idName]);
    return this.#database.update(this.db, claimable, ids, set);
  }

  /** @internal */
  deleteRows(claimable: Claimable, before: readonly AnyRow[]): Promise<void> {
    return this.#writing(() => this.#deleteRows(claimable, before));
  }

  async #deleteRows(claimable: Claimable, before: readonly AnyRow[]): Promise<void> {
    for (const row of before) this.changes.add(claimable, row, undefined);
    await this.#deleteAll(claimable, before);
  }

  async #deleteAll(claimable: Claimable, rows: readonly AnyRow[]): Promise<void> {
    if (rows.length === 0) return;
    const deleted = await this.#database.delete(
      this.db,
      claimable,
      rows.map((row) => row[claimable.idName]),
    );
    // A trigger or a policy may have kept rows that the caller would believe deleted.
    if (deleted !== rows.length)
      throw invalidArgument(
        "table",
        `${claimable.name} kept ${rows.length - deleted} of ${rows.length} deleted rows: ` +
          "check its triggers and policies",
      );
  }

  #batchOf(claimable: Claimable, deleted: readonly AnyRow[]): ClaimBatch | undefined {
    const changes = new Changes(this.#tables.types);
    for (const row of deleted) changes.add(claimable, row, undefined);
    return changes.batch();
  }

  async #defer(claimed: ClaimBatch): Promise<void> {
    const deferred = { uuid: uuidv7(), batch: claimed.batch };
    await this.#database.insertLease(this.db, {
      uuid: deferred.uuid,
      sources: claimed.sources,
      deferred: claimed.batch,
    });
    this.deferred.push(deferred);
  }

  /**
   * Runs one write after the other. A write has several statements. If those of another write came between
   * them, a savepoint could undo them, and a write could begin after the transaction has ended.
   */
  async #writing<T>(work: () => Promise<T>): Promise<T> {
    this.#check();
    const writing = this.#latest.then(work);
    this.#latest = writing.catch(() => {});
    this.#underWay.add(writing);
    try {
      return await writing;
    } finally {
      this.#underWay.delete(writing);
    }
  }

  /**
   * Keeps the transaction from being committed, because rows would be saved without claims. The database
   * undoes what it refuses itself, but the body may catch this error.
   */
  #refuse(error: unknown): never {
    if (isLeaseholdError(error)) this.#refused ??= error;
    throw error;
  }

  /** A later write would be saved without its claim, or not at all. */
  #check(): void {
    if (this.#isOver) throw invalidArgument("transaction", "is over: await every call of tx inside its body");
  }
}

function keyValues(key: readonly string[], row: AnyRow): AnyRow {
  const missing = key.find((column) => row[column] === undefined || row[column] === null);
  if (missing !== undefined)
    throw invalidArgument(missing, "has no value in the row, and it is a column of the upsert's key");
  return Object.fromEntries(key.map((column) => [column, row[column]]));
}

const noUniqueKey = ({ name }: Claimable, key: readonly string[]): Error =>
  invalidArgument(
    "key",
    `must name exactly the columns of a unique key of ${name}, not [${key.join(", ")}]: add a unique index ` +
      "of these columns, for all rows, or name those of another",
  );

/** The condition as the table's adapter takes it. */
function keyCondition({ table, name: tableName }: Claimable, values: AnyRow): unknown {
  const columns = declaredColumns(table);
  if (columns === undefined) return values;
  const equal = Object.entries(values).map(([name, value]) => {
    const column = columns[name];
    if (column === undefined)
      throw invalidArgument("key", `names ${name}, which is not a column of ${tableName}`);
    return eq(column, value);
  });
  return and(...equal);
}

const withoutColumns = (row: AnyRow, columns: readonly string[]): AnyRow =>
  Object.fromEntries(Object.entries(row).filter(([name]) => !columns.includes(name)));
