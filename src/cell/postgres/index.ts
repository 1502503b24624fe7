/** A cell's database on PostgreSQL, with drizzle-orm and node-postgres, postgres-js or PGlite. */
import type { CellDatabase } from "../local.ts";
import { PostgresDatabase, type PostgresOptions, type PostgresOrm } from "./database.ts";

export type { PostgresOptions, PostgresOrm } from "./database.ts";
export {
  ledgerHistory,
  migration,
  outstandingLeases,
  verificationProgress,
  verificationQueue,
} from "./schema.ts";

/**
 * Makes the database for `createCell` from a drizzle database on PostgreSQL.
 *
 * @param db - The database of the primary, never of a replica: reads decide between commit and rollback. With
 * node-postgres it must have a pool, not one connection.
 *
 * @example
 * ```ts
 * import { drizzle } from "drizzle-orm/node-postgres";
 * import { createCell } from "leasehold/cell";
 * import { postgres } from "leasehold/cell/postgres";
 * import { Pool } from "pg";
 *
 * const db = drizzle(new Pool({ connectionString: process.env["DATABASE_URL"] }));
 * const cell = createCell({ client, database: postgres(db), tables: [claimableUsers] });
 * ```
 */
export const postgres = <Tx>(db: PostgresOrm<Tx>, options: PostgresOptions = {}): CellDatabase<Tx> =>
  new PostgresDatabase(db, options);
