/** A cell's database on MySQL 8.0.13 or MariaDB 10.2, or newer, with drizzle-orm and mysql2. */
import { is } from "drizzle-orm";
import { MySqlTransaction, type MySqlTransactionConfig } from "drizzle-orm/mysql-core";
import { invalidArgument } from "../errors.ts";
import type { CellDatabase } from "../local.ts";
import { drizzleConnection, drizzleTables } from "../sql/drizzle.ts";
import { MysqlDatabase, type MysqlDatabaseOptions } from "./database.ts";
import { MysqlRows } from "./rows.ts";
import type { Orm } from "./schema.ts";
import { isSingleConnection } from "./session.ts";

export {
  ledgerHistory,
  migration,
  outstandingLeases,
  verificationProgress,
  verificationQueue,
} from "./schema.ts";

export type MysqlOptions = MysqlDatabaseOptions<MySqlTransactionConfig>;

/** A drizzle database on MySQL or MariaDB. */
export interface MysqlOrm<Tx> {
  transaction<T>(body: (tx: Tx) => Promise<T>, config?: MySqlTransactionConfig): Promise<T>;
}

/**
 * Makes the database for `createCell` from a drizzle database on MySQL or MariaDB.
 *
 * - All tables of a transaction must use InnoDB.
 * - Connections commit by themselves outside of transactions (`autocommit`, the default).
 * - A binary log, if there is one, must log rows or be mixed. The fences and the reads of leases need READ
 *   COMMITTED, which MySQL refuses with statement-based logs.
 * - Do not use DDL, or any other statement that commits implicitly, inside a transaction. It saves the
 *   earlier writes without a lease, and the call fails. Repair the names by hand then.
 *
 * @param db - The database of the primary, never of a replica: reads decide between commit and rollback. It
 * must have a pool, not one connection.
 *
 * @example
 * ```ts
 * import { drizzle } from "drizzle-orm/mysql2";
 * import { createCell } from "leasehold/cell";
 * import { mysql } from "leasehold/cell/mysql";
 * import { createPool } from "mysql2/promise";
 *
 * const db = drizzle(createPool({ uri: process.env["DATABASE_URL"] ?? "" }));
 * const cell = createCell({ client, database: mysql(db), tables: [claimableUsers] });
 * ```
 */
export function mysql<Tx>(db: MysqlOrm<Tx>, options: MysqlOptions = {}): CellDatabase<Tx> {
  // Its COMMIT would only release a savepoint, so the lease would be committed before the rows.
  if (is(db, MySqlTransaction)) throw invalidArgument("db", "must be the database, not a transaction of it");
  // On one connection, concurrent transactions are one: the COMMIT of each saves what the others wrote so
  // far.
  if (isSingleConnection(db))
    throw invalidArgument(
      "db",
      "must have a pool, because concurrent transactions on one connection would be one: " +
        "use drizzle(createPool(...))",
    );
  const connection = drizzleConnection<Tx, Orm>(db);
  const rows = new MysqlRows<Tx>(connection, drizzleTables);
  return new MysqlDatabase<Tx>({ connection, rows, tables: drizzleTables }, options);
}
