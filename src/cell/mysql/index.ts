/** A cell's database on MySQL 8.0.13 or MariaDB 10.2, or newer, with drizzle-orm and mysql2. */
import type { CellDatabase } from "../local.ts";
import { MysqlDatabase, type MysqlOptions, type MysqlOrm } from "./database.ts";

export type { MysqlOptions, MysqlOrm } from "./database.ts";
export {
  ledgerHistory,
  migration,
  outstandingLeases,
  verificationProgress,
  verificationQueue,
} from "./schema.ts";

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
export const mysql = <Tx>(db: MysqlOrm<Tx>, options: MysqlOptions = {}): CellDatabase<Tx> =>
  new MysqlDatabase(db, options);
