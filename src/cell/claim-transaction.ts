import { v7 as uuidv7 } from "uuid";
import { isLeaseholdError, type LeaseholdError } from "../client/errors.ts";
import { causesOf } from "./causes.ts";
import { Changes, type ClaimBatch } from "./changes.ts";
import { chunksOf, type ChunkLimits } from "./chunks.ts";
import type { Claimable } from "./claimable.ts";
import { invalidArgument } from "./errors.ts";
import type { CellDatabase, Deferred } from "./local.ts";
import type { AnyRow, AnyTable, NewRow, Row, RowUpdate, Where } from "./table.ts";
import type { ClaimableTables } from "./tables.ts";

/** The table that a statement wrote, and the id of the row if it was one row with an id. */
interface FailedWrite {
  claimable: Claimable;
  id: unknown;
}

/** How many deleted rows share a deferred lease. */
const DEFERRED_ROWS = 500;

/**
 * A local transaction that records which claimed rows it changes. Use its methods for claimed tables. `db` is
 * the driver's or ORM's own transaction, for everything else. If you change claimed rows with `db`, report
 * them with `changed`. At the end, all changed rows are read from the database again.
 */
export class ClaimTransaction<Tx> {
  readonly db: Tx;
  readonly changes: Changes;
  /** Leases to begin after the transaction. */
  readonly deferred: Deferred[] = [];
  readonly #database: CellDatabase<Tx>;
  readonly #tables: ClaimableTables;
  readonly #failedWrites = new Map<unknown, FailedWrite>();
  readonly #chunk: ChunkLimits;
  /** The writes that have not ended. */
  readonly #underWay = new Set<Promise<unknown>>();
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
      return await this.updateRows(claimable, before, set as AnyRow);
    });
  }

  /** Deletes the rows that match `where` and releases their names. Answers the deleted rows. */
  async delete<T extends AnyTable>(table: T, where: Where<T>): Promise<Row<T>[]> {
    const claimable = this.#tables.of(table);
    return this.#writing(async () => {
      const before = await this.#database.lock(this.db, claimable, { where });
      await this.deleteRows(claimable, before);
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
      for (const claimed of batches) await this.#defer(claimed);
      return before.length;
    });
  }

  /**
   * Reports a row that was changed with `db`.
   *
   * @param before The row before the change, with all claimed columns. Undefined if it did not exist.
   * @param after The row after the change. Undefined if it was deleted.
   */
  changed<T extends AnyTable>(table: T, before: Row<T> | undefined, after: Row<T> | undefined): void {
    this.#check();
    try {
      const claimable = this.#tables.of(table);
      if (before !== undefined) claimable.checkWhole(before as AnyRow);
      this.changes.add(claimable, before as AnyRow | undefined, after as AnyRow | undefined);
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
  async insertRows(
    claimable: Claimable,
    rows: readonly AnyRow[],
    options: { skipExisting?: boolean } = {},
  ): Promise<AnyRow[]> {
    if (rows.length === 0) return [];
    const [first] = rows;
    const id = rows.length === 1 ? first?.[claimable.idName] : undefined;
    return this.#writing(async () => {
      const insert = (): Promise<AnyRow[]> => this.#database.insert(this.db, claimable, rows, options);
      try {
        const stored = await this.#noting({ claimable, id }, insert);
        for (const row of stored) this.changes.add(claimable, undefined, row);
        return stored;
      } catch (error) {
        return this.#refuse(error);
      }
    });
  }

  /** @internal */
  async updateRows(claimable: Claimable, before: readonly AnyRow[], set: AnyRow): Promise<AnyRow[]> {
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
    const id = ids.length === 1 ? ids[0] : undefined;
    const update = (): Promise<AnyRow[]> => this.#database.update(this.db, claimable, ids, set);
    return this.#writing(() => this.#noting({ claimable, id }, update));
  }

  /** @internal */
  async deleteRows(claimable: Claimable, before: readonly AnyRow[]): Promise<void> {
    if (before.length === 0) return;
    for (const row of before) this.changes.add(claimable, row, undefined);
    await this.#writing(() => this.#deleteAll(claimable, before));
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

  /** @internal The insert or update that failed with this error. */
  writeOf(error: unknown): FailedWrite | undefined {
    return [...causesOf(error)].map((cause) => this.#failedWrites.get(cause)).find(Boolean);
  }

  async #noting<T>(write: FailedWrite, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      this.#failedWrites.set(error, write);
      throw error;
    }
  }

  async #writing<T>(work: () => Promise<T>): Promise<T> {
    this.#check();
    const writing = work();
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
