/** A cell's database on PostgreSQL, with drizzle-orm and node-postgres, postgres-js or PGlite. */
import type { CellDatabase } from "../local.ts";
import { PostgresDatabase, type PostgresOptions, type PostgresOrm } from "./database.ts";

export type { PostgresOptions, PostgresOrm } from "./database.ts";
export { migration, outstandingLeases, verificationProgress, verificationQueue } from "./schema.ts";

/**
 * The database for `createCell`. Pass the drizzle database of the primary, never a replica, because what is
 * read from it decides between commit and rollback.
 *
 *     const cell = createCell({ client, database: postgres(drizzle(pool)), tables: [claimableUsers] });
 */
export const postgres = <Tx>(db: PostgresOrm<Tx>, options: PostgresOptions = {}): CellDatabase<Tx> =>
  new PostgresDatabase(db, options);
