/** A cell's database on PostgreSQL, MySQL or MariaDB, with Kysely. */
import { CompiledQuery, sql, type Kysely, type Transaction } from "kysely";
import { mysqlDatabase } from "../adapter/mysql.ts";
import type { SqlResult } from "../adapter/port.ts";
import { postgresDatabase } from "../adapter/postgres.ts";
import { invalidArgument } from "../errors.ts";
import type { CellDatabase } from "../local.ts";
import type { MysqlDatabaseOptions } from "../mysql/database.ts";
import type { PostgresDatabaseOptions } from "../postgres/database.ts";
import type { TransactionConfig } from "../sql/connection.ts";
import { kyselyNames } from "./names.ts";
import { KyselyMysqlRows, KyselyPostgresRows } from "./rows.ts";

export type { ColumnValues } from "../adapter/condition.ts";
export { migration as mysqlMigration } from "../mysql/schema.ts";
export { migration as postgresMigration } from "../postgres/schema.ts";
export { kyselyTables, type KyselyCondition, type KyselyTable } from "./tables.ts";

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
