/** A cell's database on MySQL 8.0.13 or MariaDB 10.2, or newer, with mysql2 alone. */
import type { Pool, PoolConnection, ResultSetHeader, RowDataPacket } from "mysql2/promise";
import { mysqlDatabase } from "../adapter/mysql.ts";
import type { SqlAdapter, SqlResult } from "../adapter/port.ts";
import { invalidArgument } from "../errors.ts";
import type { CellDatabase } from "../local.ts";
import type { MysqlDatabaseOptions } from "../mysql/database.ts";

export {
  condition,
  table,
  type ColumnValues,
  type Condition,
  type PlainTable,
} from "../adapter/condition.ts";
export { migration } from "../mysql/schema.ts";

/**
 * Makes the database for `createCell` from a pool of `mysql2/promise`. `tx.db` is the connection of the
 * transaction. The server's settings must be those that `leasehold/cell/mysql` needs.
 *
 * @param pool - A pool on the primary, never on a replica: reads decide between commit and rollback.
 *
 * @example
 * ```ts
 * import { createCell } from "leasehold/cell";
 * import { mysql2, table } from "leasehold/cell/mysql2";
 * import { createPool } from "mysql2/promise";
 *
 * const users = table<{ id: number; username: string }>("users");
 * const pool = createPool({ uri: process.env["DATABASE_URL"] ?? "" });
 * const cell = createCell({ client, database: mysql2(pool), tables: [claimableUsers] });
 * await cell.transaction(async (tx) => {
 *   const ada = await tx.insert(users, { username: "ada" });
 *   await tx.db.query("INSERT INTO audit (user_id) VALUES (?)", [ada.id]);
 * });
 * ```
 */
export function mysql2(pool: Pool, options: MysqlDatabaseOptions = {}): CellDatabase<PoolConnection> {
  // On one connection, concurrent transactions would be one.
  if (typeof (pool as Partial<Pool>).getConnection !== "function" || "promise" in pool)
    throw invalidArgument("pool", "must be a pool of mysql2/promise");
  return mysqlDatabase(new Mysql2Adapter(pool), options);
}

class Mysql2Adapter implements SqlAdapter<PoolConnection> {
  readonly #pool: Pool;

  constructor(pool: Pool) {
    this.#pool = pool;
  }

  async transaction<T>(
    body: (tx: PoolConnection) => Promise<T>,
    { isolationLevel }: { isolationLevel?: string } = {},
  ): Promise<T> {
    const connection = await this.#pool.getConnection();
    try {
      if (isolationLevel !== undefined)
        await connection.query(`SET TRANSACTION ISOLATION LEVEL ${isolationLevel}`);
      await connection.query("START TRANSACTION");
      const value = await body(connection);
      await connection.query("COMMIT");
      connection.release();
      return value;
    } catch (error) {
      try {
        await connection.query("ROLLBACK");
        connection.release();
      } catch {
        // Its transaction may still be open.
        connection.destroy();
      }
      throw error;
    }
  }

  async query(
    tx: PoolConnection | undefined,
    statement: string,
    parameters: readonly unknown[],
  ): Promise<SqlResult> {
    const [result] = await (tx ?? this.#pool).query<RowDataPacket[] | ResultSetHeader>(
      statement,
      parameters.map(asParameter),
    );
    return Array.isArray(result)
      ? { rows: result }
      : { rows: [], affectedRows: result.affectedRows, insertId: result.insertId };
  }
}

/** Otherwise mysql2 would write an object as `a = 1`, and an array as a list. */
function asParameter(value: unknown): unknown {
  const isJson =
    typeof value === "object" && value !== null && !(value instanceof Date) && !ArrayBuffer.isView(value);
  return isJson ? JSON.stringify(value) : value;
}
