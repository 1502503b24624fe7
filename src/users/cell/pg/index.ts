/** A cell's database on PostgreSQL, with node-postgres (`pg`) alone. */
import type { Pool, PoolClient } from "pg";
import { postgresDatabase } from "../adapter/postgres.ts";
import type { SqlAdapter } from "../adapter/port.ts";
import { invalidArgument } from "../errors.ts";
import type { CellDatabase } from "../local.ts";
import type { PostgresDatabaseOptions } from "../postgres/database.ts";

export {
  condition,
  table,
  type ColumnValues,
  type Condition,
  type PlainTable,
} from "../adapter/condition.ts";
export { migration } from "../postgres/schema.ts";

/**
 * Makes the database for `createCell` from a pool of node-postgres. `tx.db` is the client of the transaction.
 *
 * @param pool - A pool on the primary, never on a replica: reads decide between commit and rollback.
 *
 * @example
 * ```ts
 * import { createCell } from "leasehold/cell";
 * import { pg, table } from "leasehold/cell/pg";
 * import { Pool } from "pg";
 *
 * const users = table<{ id: number; username: string }>("users");
 * const pool = new Pool({ connectionString: process.env["DATABASE_URL"] });
 * const cell = createCell({ client, database: pg(pool), tables: [claimableUsers] });
 * await cell.transaction(async (tx) => {
 *   const ada = await tx.insert(users, { username: "ada" });
 *   await tx.db.query("INSERT INTO audit (user_id) VALUES ($1)", [ada.id]);
 * });
 * ```
 */
export function pg(pool: Pool, options: PostgresDatabaseOptions = {}): CellDatabase<PoolClient> {
  // On one connection, concurrent transactions would be one.
  if (typeof (pool as Partial<Pool>).connect !== "function" || !("totalCount" in pool))
    throw invalidArgument("pool", "must be a Pool of node-postgres");
  return postgresDatabase(new PgAdapter(pool), options);
}

class PgAdapter implements SqlAdapter<PoolClient> {
  readonly #pool: Pool;

  constructor(pool: Pool) {
    this.#pool = pool;
  }

  async transaction<T>(
    body: (tx: PoolClient) => Promise<T>,
    { isolationLevel }: { isolationLevel?: string } = {},
  ): Promise<T> {
    const client = await this.#pool.connect();
    // Without a listener, a connection that is lost between two statements would end the process.
    let lost: Error | undefined;
    const noteLoss = (error: Error): void => void (lost ??= error);
    client.on("error", noteLoss);
    try {
      await client.query(`BEGIN${isolationLevel === undefined ? "" : ` ISOLATION LEVEL ${isolationLevel}`}`);
      const value = await body(client);
      await client.query("COMMIT");
      return value;
    } catch (error) {
      await client.query("ROLLBACK").catch(noteLoss);
      throw error;
    } finally {
      client.off("error", noteLoss);
      // The pool closes a client that is released with an error.
      client.release(lost);
    }
  }

  async query(
    tx: PoolClient | undefined,
    statement: string,
    parameters: readonly unknown[],
  ): Promise<{ rows: object[] }> {
    const { rows } = await (tx ?? this.#pool).query<object>(statement, [...parameters]);
    return { rows };
  }
}
