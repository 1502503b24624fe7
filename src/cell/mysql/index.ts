/** A cell's database on MySQL 8.0.13 or MariaDB 10.2, or newer, with drizzle-orm and mysql2. */
import type { CellDatabase } from "../local.ts";
import { MysqlDatabase, type MysqlOptions, type MysqlOrm } from "./database.ts";

export type { MysqlOptions, MysqlOrm } from "./database.ts";
export { migration, outstandingLeases, verificationProgress, verificationQueue } from "./schema.ts";

/**
 * The database for `createCell`. Pass the drizzle database of the primary, never a replica, because what is
 * read from it decides between commit and rollback.
 *
 *     const cell = createCell({ client, database: mysql(drizzle(pool)), tables: [claimableUsers] });
 *
 * Requirements: All tables of a transaction use InnoDB. Connections have `autocommit` on, the default. The
 * binary log, if enabled, has the format ROW or MIXED, because MySQL refuses READ COMMITTED with another.
 *
 * Don't use DDL or other statements that commit implicitly inside a transaction. The rows written before them
 * would be saved without a lease, the call would fail, and a verification would have to repair the claims.
 */
export const mysql = <Tx>(db: MysqlOrm<Tx>, options: MysqlOptions = {}): CellDatabase<Tx> =>
  new MysqlDatabase(db, options);
