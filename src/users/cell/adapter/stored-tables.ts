import { getTableColumns, is, Table, type Column } from "drizzle-orm";
import { isTimeType, type Claimable } from "../claimable.ts";
import { invalidArgument } from "../errors.ts";
import type { Selection } from "../local.ts";
import type { RowMethods, SelectOptions, SqlTable, SqlTables } from "../sql/connection.ts";
import type { AnyRow } from "../table.ts";
import { conditionOf } from "./condition.ts";
import type { AdapterNames } from "./port.ts";

/** A column as the database describes it. */
export interface StoredColumn {
  name: string;
  /** Such as `bigint` or `timestamp with time zone`. */
  type: string;
}

/** A table's name in the database. */
export interface StoredName {
  schema: string | undefined;
  name: string;
}

/** Reads tables from a database of one dialect. */
export interface TableReader<Tx> {
  /** Answers the table with its columns and unique keys. Undefined if it does not exist. */
  read(
    tx: Tx | undefined,
    name: StoredName,
    propertiesOf: (columns: readonly string[]) => Promise<string[]>,
  ): Promise<Table | undefined>;
}

const sameNames: AdapterNames = { table: (name) => name, property: (_table, column) => column };

/** Tables as the database describes them. Each is read once, and again after its columns have changed. */
export class StoredTables<Tx> implements SqlTables<Tx> {
  readonly #reader: TableReader<Tx>;
  readonly #names: AdapterNames;
  #known = new Map<Claimable, SqlTable>();

  constructor(reader: TableReader<Tx>, names: AdapterNames = sameNames) {
    this.#reader = reader;
    this.#names = names;
  }

  readonly condition = conditionOf;

  async of(tx: Tx | undefined, claimable: Claimable): Promise<SqlTable> {
    const tables = this.#known;
    const known = tables.get(claimable);
    if (known !== undefined) return known;
    // Its names of columns, defaults and schema would be ignored.
    if (is(claimable.table, Table))
      throw invalidArgument(
        "tables",
        `has ${claimable.name} as a table of drizzle, which only leasehold/cell/postgres and ` +
          "leasehold/cell/mysql take; name it with the function of this adapter",
      );
    const table = await this.#reader.read(tx, this.nameOf(claimable), (columns) =>
      this.propertiesOf(claimable, columns),
    );
    const read = checked(claimable, table);
    tables.set(claimable, read);
    return read;
  }

  /** Reads the tables again when they are used next, because a migration has changed one. */
  forget(): void {
    // A table that is being read right now may still lack the migration, so it must not be kept either.
    this.#known = new Map();
  }

  propertiesOf({ name }: Claimable, columns: readonly string[]): Promise<string[]> {
    return Promise.all(columns.map(async (column) => this.#names.property(name, column)));
  }

  nameOf({ name }: Claimable): StoredName {
    const stored = this.#names.table(name);
    const dot = stored.indexOf(".");
    return { schema: dot < 0 ? undefined : stored.slice(0, dot), name: stored.slice(dot + 1) };
  }
}

function checked(claimable: Claimable, table: Table | undefined): SqlTable {
  const { name, idName, changedAt, subjectIdName, scopeName, attributes } = claimable;
  if (table === undefined) throw invalidArgument("tables", `has ${name}, and the database has no such table`);
  const columns = getTableColumns(table);
  const column = (property: string, option: string): Column => {
    const found = columns[property];
    if (found === undefined)
      throw invalidArgument(option, `names ${property}, which is not a column of ${name}`);
    return found;
  };
  // JavaScript would list the value of such a column first, whatever its place.
  const odd = Object.keys(columns).find((property) => /^\d+$/.test(property));
  if (odd !== undefined)
    throw invalidArgument("tables", `has ${name}, whose column ${odd} needs another name`);
  const idColumn = column(idName, "id");
  if (subjectIdName !== undefined) column(subjectIdName, "subject.id");
  if (scopeName !== undefined) column(scopeName, "scope");
  for (const attribute of attributes) column(attribute.name, `attributes.${attribute.name}`);
  const type = changedAt === undefined ? undefined : column(changedAt, "changedAt").getSQLType();
  if (type !== undefined && !isTimeType(type))
    throw invalidArgument(
      "changedAt",
      `names ${String(changedAt)}, which must be a timestamp or datetime, not ${type}`,
    );
  return { claimable, table, idColumn };
}

/** Refuses values for columns that a table does not have, which would otherwise be dropped. */
export class CheckedRows<Tx> implements RowMethods<Tx> {
  readonly #rows: RowMethods<Tx>;
  readonly #tables: StoredTables<Tx>;

  constructor(rows: RowMethods<Tx>, tables: StoredTables<Tx>) {
    this.#rows = rows;
    this.#tables = tables;
  }

  async insert(
    tx: Tx,
    claimable: Claimable,
    rows: readonly AnyRow[],
    options: { skipExisting: boolean },
  ): Promise<AnyRow[]> {
    await this.#check(tx, claimable, new Set(rows.flatMap((row) => Object.keys(row))));
    return this.#rows.insert(tx, claimable, rows, options);
  }

  select(
    tx: Tx | undefined,
    claimable: Claimable,
    rows: Selection,
    options: SelectOptions,
  ): Promise<AnyRow[]> {
    return this.#rows.select(tx, claimable, rows, options);
  }

  async update(tx: Tx, claimable: Claimable, ids: readonly unknown[], set: AnyRow): Promise<AnyRow[]> {
    await this.#check(tx, claimable, new Set(Object.keys(set)));
    return this.#rows.update(tx, claimable, ids, set);
  }

  delete(tx: Tx, claimable: Claimable, ids: readonly unknown[]): Promise<number> {
    return this.#rows.delete(tx, claimable, ids);
  }

  async #check(tx: Tx, claimable: Claimable, names: ReadonlySet<string>): Promise<void> {
    const unknown = async (): Promise<string | undefined> => {
      const columns = getTableColumns((await this.#tables.of(tx, claimable)).table);
      return [...names].find((name) => columns[name] === undefined);
    };
    if ((await unknown()) === undefined) return;
    // A migration may have added the column since the table was read.
    this.#tables.forget();
    const missing = await unknown();
    if (missing !== undefined) throw invalidArgument(missing, `is not a column of ${claimable.name}`);
  }
}
