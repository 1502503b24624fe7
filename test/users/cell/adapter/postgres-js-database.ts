// postgres-js-database.ts
import { postgresDatabase, type PostgresDatabaseOptions, type SqlAdapter } from "leasehold/cell/adapter";
import type { CellDatabase } from "leasehold/cell";
import type { Sql, TransactionSql } from "postgres";

export function postgresJsDatabase(
  sql: Sql,
  options: PostgresDatabaseOptions = {},
): CellDatabase<TransactionSql> {
  const adapter: SqlAdapter<TransactionSql> = {
    transaction: async <T>(
      body: (tx: TransactionSql) => Promise<T>,
      { isolationLevel }: { isolationLevel?: string } = {},
    ): Promise<T> => {
      const level = isolationLevel === undefined ? "" : `ISOLATION LEVEL ${isolationLevel}`;
      const ended = await sql.begin(level, async (tx) => ({ value: await body(tx) }));
      return ended.value;
    },
    query: async (tx, statement, parameters) => ({
      rows: await (tx ?? sql).unsafe(statement, parameters as never[]),
    }),
  };
  return postgresDatabase(adapter, options);
}
