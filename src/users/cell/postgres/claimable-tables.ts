import { getTableColumns, sql, type SQL, type Table } from "drizzle-orm";
import { getTableConfig, type PgTable } from "drizzle-orm/pg-core";
import { LeaseholdError } from "../../client/errors.ts";
import type { StoredName } from "../adapter/stored-tables.ts";
import type { Claimable } from "../claimable.ts";
import { invalidArgument } from "../errors.ts";
import type { Connection, SqlTable } from "../sql/connection.ts";
import type { AnyRow } from "../table.ts";
import { quoted } from "./catalog.ts";
import { outstandingLeases, type Orm } from "./schema.ts";

/** Reads the oid of a table outside any transaction. `before` is the one that it had. */
type Read = (before: string | undefined) => Promise<string | null | undefined>;

/**
 * The oid of the table with this name, and null if there is none. As long as the table of before exists, it's
 * that one, because `SET` without `LOCAL` leaves another search path to the next user of a connection.
 */
const currentOid = (name: string, before = "0"): SQL =>
  sql`coalesce(
    (SELECT its.oid FROM pg_class AS its WHERE its.oid = ${sql.raw(before)} AND its.relname = ${name}),
    to_regclass(${quoted({ schema: undefined, name })}))`;

/**
 * Checks that a statement found the table that the cell knows. If a body sets `search_path` to another
 * schema, for example of a tenant, which has a table of the same name, rows would be written there.
 */
export class KnownTable {
  readonly #read: Read;
  readonly #mismatch: () => Error;
  #oid: string | undefined;
  #isDoubted = true;

  constructor(read: Read, mismatch: () => Error) {
    this.#read = read;
    this.#mismatch = mismatch;
  }

  /** Call this before a transaction. Inside one, a pool of one connection would deadlock. */
  async prepare(): Promise<void> {
    if (!this.#isDoubted) return;
    this.#oid = (await this.#read(this.#oid)) ?? undefined;
    // A table that is missing may be created at any time.
    this.#isDoubted = this.#oid === undefined;
  }

  /** Throws when a statement found another table. */
  check(oid: unknown): void {
    if (oid === this.#oid && oid !== undefined) return;
    // The table may have been created again, so the next transaction reads its oid again.
    this.#isDoubted = true;
    throw this.#mismatch();
  }
}

const ownTable = getTableConfig(outstandingLeases).name;

export const tableOid = sql<string>`tableoid::text`.as("table_oid");

/**
 * The table that recovery reads. If a lease were saved in another one, reconciliation would not find it, and
 * roll back the names of saved rows.
 */
export const leaseTable = <Tx>(connection: Connection<Tx, Orm>): KnownTable =>
  new KnownTable(
    async (before) => {
      const [seen] = await connection
        .orm()
        .select({ oid: sql<string | null>`${currentOid(ownTable, before)}::oid::text`.as("oid") })
        .from(sql`(VALUES (1)) AS one`);
      return seen?.oid;
    },
    () =>
      new LeaseholdError(
        "the lease's row was written to another table than the one that recovery reads. " +
          `If the transaction sets \`search_path\`, put the schema of ${ownTable} first`,
        { code: "WRONG_TABLE" },
      ),
  );

/** The column with the oid of a row's table. Kysely's CamelCasePlugin leaves such a name as it is. */
export const TABLE_OID = "leaseholdtableoid";

/** A partition has an oid of its own. */
const oidText = (oid: string): string => `coalesce(pg_partition_root(${oid}), ${oid})::oid::text`;

/** The oid of the table in which a statement found a row. */
export const oidOfRow = (table: StoredName): string => oidText(`${quoted(table)}.tableoid`);

/** The oid of the table that the search path finds. Null if there is none. */
export const oidByName = (table: StoredName): string =>
  oidText(`to_regclass('${quoted(table).replaceAll("'", "''")}')`);

/** The columns of a table, with `TABLE_OID` if its name has no schema. */
export function columnsWithOid(table: Table): Record<string, SQL | SQL.Aliased> {
  const { schema, name } = getTableConfig(table as PgTable);
  const columns = getTableColumns(table) as Record<string, never>;
  if (schema !== undefined) return columns;
  return { ...columns, [TABLE_OID]: sql.raw(oidOfRow({ schema, name })).as(TABLE_OID) };
}

/**
 * Checks claimable tables without a schema in their names, which are others after `SET search_path`. Rows of
 * two schemas may have the same id. The coordinator knows a row by its source and id, so the claims of one
 * would be taken for those of the other.
 */
export class ClaimableTables<Tx> {
  readonly #connection: Connection<Tx, Orm>;
  readonly #known = new Map<Claimable, KnownTable>();

  constructor(connection: Connection<Tx, Orm>) {
    this.#connection = connection;
  }

  /** Reads which table it is. Call this outside transactions, before a cell uses the table. */
  async add({ table, claimable }: SqlTable): Promise<void> {
    const { schema, name } = getTableConfig(table as PgTable);
    if (schema !== undefined) return;
    const known = new KnownTable(
      (before) => this.#read(claimable, name, before),
      () => anotherTable(claimable),
    );
    await known.prepare();
    this.#known.set(claimable, known);
  }

  /** Reads the tables again that may have been created again. Call this before a transaction. */
  async prepare(): Promise<void> {
    for (const known of this.#known.values()) await known.prepare();
  }

  /** Throws if a row is of another table. Answers the rows without `TABLE_OID`. */
  checked(claimable: Claimable, rows: readonly AnyRow[]): AnyRow[] {
    return rows.map((each) => {
      if (!(TABLE_OID in each)) return each;
      const { [TABLE_OID]: oid, ...row } = each;
      this.check(claimable, oid);
      return row;
    });
  }

  /** Throws if the search path has found another table. */
  check(claimable: Claimable, oid: unknown): void {
    this.#known.get(claimable)?.check(oid);
  }

  /** Fails with the database's error if the cell's own tables don't exist. */
  async #read(claimable: Claimable, name: string, before: string | undefined): Promise<string | undefined> {
    const [found] = await this.#connection
      .orm()
      .select({
        oid: sql<string>`${sql.raw(oidText("pg_class.oid"))}`.as("table_oid"),
        isElsewhere: sql<boolean>`relnamespace <> (SELECT own.relnamespace FROM pg_class AS own
          WHERE own.oid = ${ownTable}::regclass)`.as("is_elsewhere"),
      })
      .from(sql`pg_class`)
      .where(sql`oid = ${currentOid(name, before)}`);
    if (found?.isElsewhere === true) throw foundElsewhere(claimable);
    return found?.oid;
  }
}

const foundElsewhere = ({ name }: Claimable): Error =>
  invalidArgument(
    "tables",
    `has ${name}, which the search path finds in another schema than ${ownTable}: create the cell's tables ` +
      "in the schema of the claimable tables, or name its schema, and give each schema's table its own " +
      "`source`",
  );

const anotherTable = ({ name }: Claimable): Error =>
  invalidArgument(
    "tables",
    `has ${name}, which is now another table than at the cell's first use: if \`search_path\` has changed, ` +
      "name the table's schema, and give each schema's table its own `source`. If a migration has created " +
      "the table again, try again",
  );
