/** A cell's database on PostgreSQL, with drizzle-orm and node-postgres, postgres-js or PGlite. */
import { entityKind, is } from "drizzle-orm";
import { PgTransaction, type PgTransactionConfig } from "drizzle-orm/pg-core";
import { invalidArgument } from "../errors.ts";
import type { CellDatabase } from "../local.ts";
import { drizzleConnection, drizzleTables } from "../sql/drizzle.ts";
import { PostgresDatabase, type PostgresDatabaseOptions } from "./database.ts";
import { PostgresRows } from "./rows.ts";
import type { Orm } from "./schema.ts";

export {
  ledgerHistory,
  migration,
  outstandingLeases,
  verificationProgress,
  verificationQueue,
} from "./schema.ts";

export type PostgresOptions = PostgresDatabaseOptions<PgTransactionConfig>;

/** A drizzle database on PostgreSQL, whatever its driver. */
export interface PostgresOrm<Tx> {
  transaction<T>(body: (tx: Tx) => Promise<T>, config?: PgTransactionConfig): Promise<T>;
}

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
export function postgres<Tx>(db: PostgresOrm<Tx>, options: PostgresOptions = {}): CellDatabase<Tx> {
  // Its COMMIT would only release a savepoint, so the lease would be committed before the rows.
  if (is(db, PgTransaction)) throw invalidArgument("db", "must be the database, not a transaction of it");
  refuseSingleClient(db);
  const connection = drizzleConnection<Tx, Orm>(db);
  const rows = new PostgresRows<Tx>(connection, drizzleTables);
  return new PostgresDatabase<Tx>({ connection, rows, tables: drizzleTables }, options);
}

/**
 * On one connection of node-postgres, concurrent transactions are one: the COMMIT of each saves what the
 * others wrote so far, without their leases. PGlite and postgres-js run such transactions one after the
 * other.
 */
function refuseSingleClient(db: object): void {
  // Compares drizzle's class marker, because importing the class would import its driver.
  if ((db.constructor as { [entityKind]?: unknown })[entityKind] !== "NodePgDatabase") return;
  const { $client: client } = db as { $client?: unknown };
  if (typeof client === "object" && client !== null && !isPool(client))
    throw invalidArgument(
      "db",
      "must have a pool, because concurrent transactions on one connection would be one: " +
        "use drizzle(new Pool(...))",
    );
}

/**
 * Recognizes pools by class name, as drizzle does, or by a property, in case a bundler has renamed the class.
 */
const isPool = (client: object): boolean =>
  client.constructor.name.includes("Pool") || "totalCount" in client;
