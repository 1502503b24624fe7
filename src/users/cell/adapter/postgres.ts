import { drizzle } from "drizzle-orm/pg-proxy";
import type { CellDatabase } from "../local.ts";
import { postgresForeignKeys, postgresTableReader } from "../postgres/catalog.ts";
import { PostgresDatabase, type PostgresDatabaseOptions } from "../postgres/database.ts";
import { isMissingColumn } from "../postgres/failure.ts";
import { PostgresRows } from "../postgres/rows.ts";
import type { Orm } from "../postgres/schema.ts";
import { AdapterConnection } from "./adapter-connection.ts";
import type { SqlAdapter } from "./port.ts";
import { CheckedRows, StoredTables } from "./stored-tables.ts";

/**
 * Makes the database for `createCell` from an adapter for PostgreSQL. Its tables are `NamedTable`s.
 *
 * @example
 * ```ts
 * import { createCell } from "leasehold/cell";
 * import { postgresDatabase, type SqlAdapter } from "leasehold/cell/adapter";
 *
 * declare const adapter: SqlAdapter<MyTransaction>;
 * declare class MyTransaction {}
 * const database = postgresDatabase(adapter);
 * const cell = createCell({ client, database, tables: [claimableUsers] });
 * ```
 */
export function postgresDatabase<Tx>(
  adapter: SqlAdapter<Tx>,
  options: PostgresDatabaseOptions = {},
): CellDatabase<Tx> {
  const connection = new AdapterConnection<Tx, Orm>(adapter, {
    ormOf: (send) =>
      drizzle(async (statement, parameters, method) => {
        const { rows } = await send(statement, parameters);
        return { rows: method === "all" ? rows.map((row) => Object.values(row)) : [...rows] };
      }),
    // A migration has changed a table.
    isMissing: isMissingColumn,
    onMissing: () => tables.forget(),
  });
  const tables = new StoredTables(postgresTableReader(connection), adapter.names);
  const rows = new PostgresRows(connection, tables);
  return new PostgresDatabase(
    {
      connection,
      tables,
      rows: adapter.rows ?? new CheckedRows(rows, tables),
      ownRows: adapter.rows,
      foreignKeys: postgresForeignKeys(connection, tables),
    },
    options,
  );
}
