/** A cell's database on PostgreSQL, MySQL or MariaDB, with Kysely. */
import {
  CompiledQuery,
  sql,
  type Expression,
  type ExpressionBuilder,
  type InsertObject,
  type Kysely,
  type Selectable,
  type SqlBool,
  type Transaction,
  type UpdateObject,
} from "kysely";
import type { ColumnValues } from "../adapter/condition.ts";
import { mysqlDatabase } from "../adapter/mysql.ts";
import type { SqlResult } from "../adapter/port.ts";
import { postgresDatabase } from "../adapter/postgres.ts";
import { invalidArgument } from "../errors.ts";
import type { CellDatabase } from "../local.ts";
import type { MysqlDatabaseOptions } from "../mysql/database.ts";
import type { PostgresDatabaseOptions } from "../postgres/database.ts";
import type { TransactionConfig } from "../sql/connection.ts";
import { NamedTable } from "../table.ts";
import { KyselyMysqlRows, kyselyNames, KyselyPostgresRows } from "./rows.ts";

export type { ColumnValues } from "../adapter/condition.ts";
export { migration as mysqlMigration } from "../mysql/schema.ts";
export { migration as postgresMigration } from "../postgres/schema.ts";

/**
 * Makes the database for `createCell` from Kysely on PostgreSQL. `tx.db` is Kysely's transaction.
 *
 * @param db - Kysely on the primary, never on a replica: reads decide between commit and rollback. Plugins
 * apply to claimable tables.
 *
 * @example
 * ```ts
 * import { createCell } from "leasehold/cell";
 * import { kyselyPostgres, kyselyTables } from "leasehold/cell/kysely";
 * import { Kysely, PostgresDialect, type Generated } from "kysely";
 * import { Pool } from "pg";
 *
 * interface Database {
 *   users: { id: Generated<number>; username: string };
 *   audit: { user_id: number };
 * }
 * const pool = new Pool({ connectionString: process.env["DATABASE_URL"] });
 * const db = new Kysely<Database>({ dialect: new PostgresDialect({ pool }) });
 * const users = kyselyTables<Database>()("users");
 * const cell = createCell({ client, database: kyselyPostgres(db), tables: [claimableUsers] });
 * await cell.transaction(async (tx) => {
 *   const ada = await tx.insert(users, { username: "ada" });
 *   await tx.update(users, (eb) => eb("username", "=", "ada"), { username: "grace" });
 *   await tx.db.insertInto("audit").values({ user_id: ada.id }).execute();
 * });
 * ```
 */
export function kyselyPostgres<DB>(
  db: Kysely<DB>,
  options: PostgresDatabaseOptions = {},
): CellDatabase<Transaction<DB>> {
  checkDatabase(db, '"a" = $1', "PostgreSQL");
  return postgresDatabase(
    {
      transaction: (body, config) => inTransaction(db, config, body),
      query: (tx, statement, parameters) => queryWith(tx ?? db, statement, parameters),
      rows: new KyselyPostgresRows(db),
      names: kyselyNames(db),
    },
    options,
  );
}

/**
 * Makes the database for `createCell` from Kysely on MySQL 8.0.13 or MariaDB 10.2, or newer. `tx.db` is
 * Kysely's transaction. The server's settings must be those that `leasehold/cell/mysql` needs.
 *
 * @param db - Kysely on the primary, never on a replica: reads decide between commit and rollback. Plugins
 * apply to claimable tables.
 *
 * @example
 * ```ts
 * import { createCell } from "leasehold/cell";
 * import { kyselyMysql } from "leasehold/cell/kysely";
 * import { Kysely, MysqlDialect, type Generated } from "kysely";
 * import { createPool } from "mysql2";
 *
 * interface Database {
 *   users: { id: Generated<number>; username: string };
 * }
 * const pool = createPool({ uri: process.env["DATABASE_URL"] ?? "" });
 * const db = new Kysely<Database>({ dialect: new MysqlDialect({ pool }) });
 * const cell = createCell({ client, database: kyselyMysql(db), tables: [claimableUsers] });
 * ```
 */
export function kyselyMysql<DB>(
  db: Kysely<DB>,
  options: MysqlDatabaseOptions = {},
): CellDatabase<Transaction<DB>> {
  checkDatabase(db, "`a` = ?", "MySQL or MariaDB");
  return mysqlDatabase(
    {
      transaction: (body, config) => inTransaction(db, config, body),
      query: (tx, statement, parameters) => queryWith(tx ?? db, statement, parameters),
      rows: new KyselyMysqlRows(db),
      names: kyselyNames(db),
    },
    options,
  );
}

function checkDatabase<DB>(db: Kysely<DB>, expected: string, server: string): void {
  if (db.isTransaction) throw invalidArgument("db", "must be the database, not a transaction");
  const { sql: written } = sql`${sql.ref("a")} = ${1}`.compile(db.withoutPlugins());
  if (written !== expected) throw invalidArgument("db", `must have a dialect of ${server}`);
}

function inTransaction<DB, T>(
  db: Kysely<DB>,
  { isolationLevel }: TransactionConfig = {},
  body: (tx: Transaction<DB>) => Promise<T>,
): Promise<T> {
  const transaction = db.transaction();
  return (isolationLevel === undefined ? transaction : transaction.setIsolationLevel(isolationLevel)).execute(
    body,
  );
}

/** Plugins must not change Leasehold's own statements and results. */
async function queryWith<DB>(
  db: Kysely<DB>,
  statement: string,
  parameters: readonly unknown[],
): Promise<SqlResult> {
  const { rows, numAffectedRows, insertId } = await db
    .withoutPlugins()
    .executeQuery<object>(CompiledQuery.raw(statement, [...parameters]));
  return { rows, affectedRows: Number(numAffectedRows ?? 0n), insertId: insertId ?? 0 };
}

/** Kysely's own conditions, or an object of columns, as other adapters have it. */
export type KyselyCondition<DB, TB extends keyof DB> =
  | ((eb: ExpressionBuilder<DB, TB>) => Expression<SqlBool>)
  | Expression<SqlBool>
  | ColumnValues<Selectable<DB[TB]>>;

/** A table of Kysely's `Database` interface. */
export type KyselyTable<DB, TB extends keyof DB> = NamedTable<
  Selectable<DB[TB]>,
  InsertObject<DB, TB>,
  KyselyCondition<DB, TB>,
  UpdateObject<DB, TB>
>;

/**
 * Makes the function that names the tables of your `Database` interface. Rows, new rows and conditions then
 * have its types.
 *
 * @example
 * ```ts
 * import { claimable } from "leasehold/cell";
 * import { kyselyTables } from "leasehold/cell/kysely";
 * import type { Generated } from "kysely";
 *
 * interface Database {
 *   users: { id: Generated<number>; username: string; bio: string | null };
 * }
 * const table = kyselyTables<Database>();
 * const users = table("users");
 * const claimableUsers = claimable(users, {
 *   source: "RAILS_TABLE_USERS",
 *   subject: { type: "USER", id: "id" },
 *   attributes: { username: "USERNAMES" },
 * });
 * ```
 */
export const kyselyTables =
  <DB>() =>
  <TB extends keyof DB & string>(name: TB): KyselyTable<DB, TB> =>
    new NamedTable(name);
