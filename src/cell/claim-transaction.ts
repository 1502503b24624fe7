import type { SQL, Table } from "drizzle-orm";
import { v7 as uuidv7 } from "uuid";
import { Changes } from "./changes.ts";
import { chunksOf, type ChunkLimits } from "./chunks.ts";
import type { AnyRow, Claimable, NewRow, Row } from "./claimable.ts";
import { invalidArgument } from "./errors.ts";
import type { CellDatabase, Deferred } from "./local.ts";
import type { ClaimableTables } from "./tables.ts";

/** Deleted rows whose claims are given up in one lease afterwards. */
const DEFERRED_ROWS = 500;

/**
 * A local transaction that knows which claimed rows it touches. Its own methods write and remember; `db` is drizzle's transaction, for everything else:
 * claimed rows that are changed with it have to be told with `changed`. What became of them is read from the database at the end.
 */
export class ClaimTransaction<Tx> {
  readonly db: Tx;
  readonly changes = new Changes();
  /** Begun after the transaction. */
  readonly deferred: Deferred[] = [];
  readonly #database: CellDatabase<Tx>;
  readonly #tables: ClaimableTables;
  readonly #chunk: ChunkLimits;
  #underWay = 0;
  #isOver = false;

  /** Of a cell: see `Cell.transaction`. */
  constructor(db: Tx, database: CellDatabase<Tx>, tables: ClaimableTables, chunk: ChunkLimits) {
    this.db = db;
    this.#database = database;
    this.#tables = tables;
    this.#chunk = chunk;
  }

  /** Inserts rows, and claims their names. Answers them as they are stored, with their ids. */
  insert<T extends Table>(table: T, row: NewRow<T>): Promise<Row<T>>;
  insert<T extends Table>(table: T, rows: readonly NewRow<T>[]): Promise<Row<T>[]>;
  async insert<T extends Table>(
    table: T,
    given: NewRow<T> | readonly NewRow<T>[],
  ): Promise<Row<T> | Row<T>[]> {
    const rows = (Array.isArray(given) ? given : [given]) as AnyRow[];
    const stored = await this.insertRows(this.#tables.of(table), rows);
    return (Array.isArray(given) ? stored : stored[0]) as Row<T> | Row<T>[];
  }

  /** Updates the rows that `where` matches: names that change are given up and claimed in one lease. Answers the rows as they are now. */
  async update<T extends Table>(
    table: T,
    where: SQL | undefined,
    set: Partial<NewRow<T>>,
  ): Promise<Row<T>[]> {
    const claimable = this.#tables.of(table);
    return this.#writing(async () => {
      const before = await this.#database.lock(this.db, claimable, where);
      return (await this.updateRows(claimable, before, set)) as Row<T>[];
    });
  }

  /** Deletes the rows that `where` matches, and gives their names up. Answers them as they were. */
  async delete<T extends Table>(table: T, where: SQL | undefined): Promise<Row<T>[]> {
    const claimable = this.#tables.of(table);
    return this.#writing(async () => {
      const before = await this.#database.lock(this.db, claimable, where);
      await this.deleteRows(claimable, before);
      return before as Row<T>[];
    });
  }

  /**
   * Deletes any number of rows, and gives their names up after this transaction is saved, 500 rows at a time: until then nobody else can take them.
   * Survives a crash in between. Answers how many rows.
   */
  async deleteLater(table: Table, where: SQL | undefined): Promise<number> {
    const claimable = this.#tables.of(table);
    return this.#writing(async () => {
      const before = await this.#database.lock(this.db, claimable, where);
      await this.#deleteAll(claimable, before);
      const limits = { ...this.#chunk, records: Math.min(DEFERRED_ROWS, this.#chunk.records) };
      for (const rows of chunksOf(before, claimable, limits)) await this.#defer(claimable, rows);
      return before.length;
    });
  }

  /** Tells of a row that was changed with `db`: as it was (undefined: not there), with all claimed columns, and as it is (undefined: gone). */
  changed<T extends Table>(table: T, before: Row<T> | undefined, after: Row<T> | undefined): void {
    this.#check();
    const claimable = this.#tables.of(table);
    if (before !== undefined) claimable.checkWhole(before);
    this.changes.add(claimable, before, after);
  }

  /** After the body: everything that was begun has ended, and every touched row is as the database has it. */
  async finish(): Promise<void> {
    this.#isOver = true;
    if (this.#underWay > 0)
      throw invalidArgument("transaction", "ended before its writes did: await every call of tx");
    await this.changes.refresh((claimable, ids) => this.#database.read(this.db, claimable, ids));
  }

  /** @internal */
  async insertRows(
    claimable: Claimable,
    rows: readonly AnyRow[],
    options: { skipExisting?: boolean } = {},
  ): Promise<AnyRow[]> {
    if (rows.length === 0) return [];
    return this.#writing(async () => {
      const stored = await this.#database.insert(this.db, claimable, rows, options);
      for (const row of stored) this.changes.add(claimable, undefined, row);
      return stored;
    });
  }

  /** @internal */
  async updateRows(claimable: Claimable, before: readonly AnyRow[], set: AnyRow): Promise<AnyRow[]> {
    if (before.length === 0) return [];
    const { idName } = claimable;
    if (idName in set)
      throw invalidArgument(
        idName,
        `of ${claimable.name} cannot be set: the id of a claimed row is for good`,
      );
    // Before it is written: an error that the body catches must not hide what it did.
    for (const row of before) this.changes.add(claimable, row, row);
    return this.#writing(() =>
      this.#database.update(
        this.db,
        claimable,
        before.map((row) => row[idName]),
        set,
      ),
    );
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
    // A trigger or a policy that keeps them: whoever asked for the deletion would believe that they are gone.
    if (deleted !== rows.length)
      throw invalidArgument(
        "table",
        `${claimable.name} kept ${rows.length - deleted} of ${rows.length} rows that were to be deleted`,
      );
  }

  async #defer(claimable: Claimable, rows: readonly AnyRow[]): Promise<void> {
    const changes = new Changes();
    for (const row of rows) changes.add(claimable, row, undefined);
    const claimed = changes.batch();
    if (claimed === undefined) return;
    const deferred = { uuid: uuidv7(), batch: claimed.batch };
    await this.#database.insertLease(this.db, {
      uuid: deferred.uuid,
      sources: claimed.sources,
      deferred: claimed.batch,
    });
    this.deferred.push(deferred);
  }

  async #writing<T>(work: () => Promise<T>): Promise<T> {
    this.#check();
    this.#underWay += 1;
    try {
      return await work();
    } finally {
      this.#underWay -= 1;
    }
  }

  /** What came later would be saved without its claim, or not at all. */
  #check(): void {
    if (this.#isOver) throw invalidArgument("transaction", "is over: await every call of tx inside its body");
  }
}
