import { eq, type Table } from "drizzle-orm";
import { Changes } from "./changes.ts";
import type { ClaimTransaction } from "./claim-transaction.ts";
import type { AnyRow, Claimable, NewRow, Row } from "./claimable.ts";
import { invalidArgument } from "./errors.ts";
import type { CellDatabase } from "./local.ts";
import type { ClaimableTables } from "./tables.ts";

type Write<Tx> = (tx: ClaimTransaction<Tx>, database: CellDatabase<Tx>) => Promise<void>;

/**
 * The changes of a transaction, told before it: their names are taken first, and the rows are written afterwards. Each method may be called any
 * number of times.
 */
export class PlannedWrites<Tx> {
  readonly changes = new Changes();
  readonly #writes: Write<Tx>[] = [];
  readonly #tables: ClaimableTables;

  constructor(tables: ClaimableTables) {
    this.#tables = tables;
  }

  /** A row with its id: made by the caller, or drawn from a sequence. An id that the database makes at the insert is not known in time. */
  insert<T extends Table>(table: T, row: NewRow<T>): void {
    const claimable = this.#tables.of(table);
    const given = row as AnyRow;
    if (given[claimable.idName] === undefined || given[claimable.idName] === null) throw noId(claimable);
    this.changes.add(claimable, undefined, given);
    this.#writes.push(async (tx) => void (await tx.insertRows(claimable, [given])));
  }

  /** A row as it was read, and what to set. Fails, with nothing changed, when its claimed columns are not as they were read any more. */
  update<T extends Table>(table: T, before: Row<T>, set: Partial<NewRow<T>>): void {
    const claimable = this.#tables.of(table);
    const was = before as AnyRow;
    this.changes.add(claimable, was, { ...was, ...set });
    this.#writes.push(
      async (tx, database) =>
        void (await tx.updateRows(claimable, await asRead(tx, database, claimable, was), set)),
    );
  }

  /** A row as it was read. */
  delete<T extends Table>(table: T, before: Row<T>): void {
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
  const rows = await database.lock(db, claimable, eq(claimable.idColumn, before[claimable.idName]));
  if (rows.length === 0)
    throw invalidArgument(
      claimable.idName,
      `of ${claimable.name} ${claimable.idOf(before)} is not there any more`,
    );
  return rows;
}

function noId({ name, idName, idColumn }: Claimable): Error {
  const isMade = idColumn.hasDefault || idColumn.generatedIdentity !== undefined;
  const why = isMade ? "is made by the database at the insert, too late for a begin before it" : "is missing";
  return invalidArgument(
    idName,
    `of ${name} ${why}: give the row an id of your own or one drawn from the sequence, or use transaction()`,
  );
}
