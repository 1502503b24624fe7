import { TableNode, type Kysely, type QueryResult } from "kysely";
import type { AdapterNames } from "../adapter/port.ts";
import { invalidArgument } from "../errors.ts";
import { withAnyTables } from "./any-tables.ts";

/**
 * The names that Kysely's plugins make, such as those of CamelCasePlugin. Asks the plugins themselves, with a
 * query that is compiled and a result that is made up.
 */
export function kyselyNames<DB>(db: Kysely<DB>): AdapterNames {
  const compiled = (table: string) => withAnyTables(db).selectFrom(table).selectAll().compile();
  return {
    table: (table) => {
      const { query } = compiled(table);
      const from = query.kind === "SelectQueryNode" ? query.from?.froms[0] : undefined;
      if (from === undefined || !TableNode.is(from))
        throw invalidArgument("tables", `has ${table}, which Kysely does not read as one table`);
      const { schema, identifier } = from.table;
      return schema === undefined ? identifier.name : `${schema.name}.${identifier.name}`;
    },
    property: async (table, column) => {
      const { queryId } = compiled(table);
      let result: QueryResult<Record<string, unknown>> = { rows: [{ [column]: null }] };
      for (const plugin of db.getExecutor().plugins)
        result = await plugin.transformResult({ queryId, result });
      return Object.keys(result.rows[0] ?? {})[0] ?? column;
    },
  };
}
