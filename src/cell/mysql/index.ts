/** A cell's database on MySQL (8.0.13 or newer) or MariaDB (10.2 or newer), through drizzle-orm and mysql2. */
import type { CellDatabase } from "../local.ts";
import { MysqlDatabase, type MysqlOptions, type MysqlOrm } from "./database.ts";

export type { MysqlOptions, MysqlOrm } from "./database.ts";
export { migration, outstandingLeases, verificationProgress, verificationQueue } from "./schema.ts";

/**
 * The database for `createCell`. Give it the drizzle database of the primary, never a replica: what is read there decides between commit and rollback.
 *
 *     const cell = createCell({ client, database: mysql(drizzle(pool)), tables: [claimableUsers] });
 *
 * All tables of a transaction must be InnoDB's, its connections commit by themselves outside of transactions (`autocommit`, the default), and the
 * server's binary log, if there is one, is of rows or mixed: READ COMMITTED, which the fences and the reads of leases need, is refused with another.
 * DDL, and whatever else commits implicitly, must not be used inside a transaction: what was written before it is saved without a lease, the call
 * fails, and the names have to be brought back in line by hand.
 */
export const mysql = <Tx>(db: MysqlOrm<Tx>, options: MysqlOptions = {}): CellDatabase<Tx> =>
  new MysqlDatabase(db, options);
