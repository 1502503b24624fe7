import { drizzle } from "drizzle-orm/mysql-proxy";
import type { CellDatabase } from "../local.ts";
import { MysqlDatabase, type MysqlDatabaseOptions } from "../mysql/database.ts";
import { isMissingColumn } from "../mysql/failure.ts";
import { mysqlForeignKeys, mysqlTableReader } from "../mysql/information-schema.ts";
import { MysqlRows } from "../mysql/rows.ts";
import type { Orm } from "../mysql/schema.ts";
import { AdapterConnection } from "./adapter-connection.ts";
import type { SqlAdapter } from "./port.ts";
import { CheckedRows, StoredTables } from "./stored-tables.ts";

/**
 * Makes the database for `createCell` from an adapter for MySQL or MariaDB. Its tables are `NamedTable`s. The
 * server's settings must be those that `leasehold/cell/mysql` needs.
 *
 * @example
 * ```ts
 * import { createCell } from "leasehold/cell";
 * import { mysqlDatabase, type SqlAdapter } from "leasehold/cell/adapter";
 *
 * declare const adapter: SqlAdapter<MyTransaction>;
 * declare class MyTransaction {}
 * const database = mysqlDatabase(adapter);
 * const cell = createCell({ client, database, tables: [claimableUsers] });
 * ```
 */
export function mysqlDatabase<Tx>(
  adapter: SqlAdapter<Tx>,
  options: MysqlDatabaseOptions = {},
): CellDatabase<Tx> {
  const connection = new AdapterConnection<Tx, Orm>(adapter, {
    ormOf: (send) =>
      drizzle(async (statement, parameters, method) => {
        const { rows, affectedRows, insertId } = await send(statement, parameters);
        return {
          rows:
            method === "all"
              ? rows.map((row) => Object.values(row) as unknown)
              : [{ affectedRows, insertId }],
        };
      }),
    // A migration has changed a table.
    isMissing: isMissingColumn,
    onMissing: () => tables.forget(),
  });
  const tables = new StoredTables(mysqlTableReader(connection), adapter.names);
  const rows = new MysqlRows(connection, tables);
  return new MysqlDatabase(
    {
      connection,
      tables,
      rows: adapter.rows ?? new CheckedRows(rows, tables),
      ownRows: adapter.rows,
      foreignKeys: mysqlForeignKeys(connection, tables),
    },
    options,
  );
}
