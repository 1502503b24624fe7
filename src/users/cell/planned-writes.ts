import { Changes } from "./changes.ts";
import type { ClaimTransaction } from "./claim-transaction.ts";
import type { Claimable } from "./claimable.ts";
import { invalidArgument } from "./errors.ts";
import type { CellDatabase } from "./local.ts";
import {
  declaredColumns,
  type AnyRow,
  type AnyTable,
  type NewRow,
  type Row,
  type RowUpdate,
} from "./table.ts";
import type { ClaimableTables } from "./tables.ts";

type Write<Tx> = (tx: ClaimTransaction<Tx>, database: CellDatabase<Tx>) => Promise<void>;

/**
 * The writes of a transaction, declared before it: their names are claimed first, and the rows are written
 * afterwards. Each method may be called any number of times.
 */
export class PlannedWrites<Tx> {
  readonly changes: Changes;
  readonly #writes: Write<Tx>[] = [];
  readonly #tables: ClaimableTables;

  constructor(tables: ClaimableTables) {
    this.#tables = tables;
    this.changes = new Changes(tables.types);
  }

  /** Inserts a row. It needs its id now, made by the caller or drawn from a sequence. */
  insert<T extends AnyTable>(table: T, row: NewRow<T>): void {
    const claimable = this.#tables.of(table);
    const given = row as AnyRow;
    if (given[claimable.idName] === undefined || given[claimable.idName] === null) throw noId(claimable);
    this.changes.add(claimable, undefined, given);
    this.#writes.push(async (tx) => void (await tx.insertRows(claimable, [given])));
  }

  /** Updates a row as it was read. The transaction fails if its claimed columns have changed since. */
  update<T extends AnyTable>(table: T, before: Row<T>, given: RowUpdate<T>): void {
    const claimable = this.#tables.of(table);
    const set = given as AnyRow;
    const was = before as AnyRow;
    this.changes.add(claimable, was, { ...was, ...set });
    this.#writes.push(
      async (tx, database) =>
        void (await tx.updateRows(claimable, await asRead(tx, database, claimable, was), set)),
    );
  }

  /** Deletes a row as it was read. The transaction fails if its claimed columns have changed since. */
  delete<T extends AnyTable>(table: T, before: Row<T>): void {
    const claimable = this.#tables.of(table);
    const was = before as AnyRow;
    this.changes.add(claimable, was, undefined);
    this.#writes.push(async (tx, database) =>
      tx.deleteRows(claimable, await asRead(tx, database, claimable, was)),
    );
  }

  async apply(tx: ClaimTransaction<Tx>, database: CellDatabase<Tx>): Promise<void> {
    for (const write of this.#writes) await write(tx, database);
  }
}

async function asRead<Tx>(
  { db }: ClaimTransaction<Tx>,
  database: CellDatabase<Tx>,
  claimable: Claimable,
  before: AnyRow,
): Promise<AnyRow[]> {
  const rows = await database.lock(db, claimable, { ids: [before[claimable.idName]] });
  if (rows.length === 0)
    throw invalidArgument(
      claimable.idName,
      `of ${claimable.name} ${claimable.idOf(before)} was deleted since it was read: read the rows again`,
    );
  return rows;
}

function noId({ table, name, idName }: Claimable): Error {
  const column = declaredColumns(table)?.[idName];
  const isMade = column?.hasDefault === true || column?.generatedIdentity !== undefined;
  const why = isMade ? "is made by the database at the insert, which is after the begin" : "is missing";
  return invalidArgument(
    idName,
    `of ${name} ${why}: give the row an id, for example from its sequence, or use transaction()`,
  );
}
