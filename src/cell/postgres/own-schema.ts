import { getTableColumns, sql, type SQL, type Table } from "drizzle-orm";
import { getTableConfig, type PgTable } from "drizzle-orm/pg-core";
import type { StoredName } from "../adapter/stored-tables.ts";
import type { Claimable } from "../claimable.ts";
import { invalidArgument } from "../errors.ts";
import type { AnyRow } from "../table.ts";
import { quoted } from "./read-table.ts";
import { outstandingLeases } from "./schema.ts";

/** The column that says whether a row's table is in another schema. */
export const ELSEWHERE = "leasehold";

const own = getTableConfig(outstandingLeases).name;

/**
 * Whether a table is in another schema than the cell's own tables. Null if one of them does not exist.
 *
 * A table without a schema in its name is a different one after `SET search_path`, and rows of both may have
 * the same id. The coordinator knows a row by its source and id, so the claims of one would be taken for
 * those of the other.
 */
export const isElsewhere = (table: StoredName): string =>
  relatedTo(`to_regclass('${quoted(table).replaceAll("'", "''")}')`);

/** The same for the table that a statement has found. A partition may be in a schema of its own. */
export function rowIsElsewhere(table: StoredName): string {
  const oid = `${quoted(table)}.tableoid`;
  return relatedTo(`coalesce(pg_partition_root(${oid}), ${oid})`);
}

const relatedTo = (oid: string): string =>
  `(SELECT its.relnamespace <> own.relnamespace FROM pg_class its, pg_class own
    WHERE its.oid = ${oid} AND own.oid = to_regclass('${own}'))`;

/** The columns of a table, with `ELSEWHERE` if its name has no schema. */
export function checkedColumns(table: Table): Record<string, SQL | SQL.Aliased> {
  const { schema, name } = getTableConfig(table as PgTable);
  const columns = getTableColumns(table) as Record<string, never>;
  if (schema !== undefined) return columns;
  return { ...columns, [ELSEWHERE]: sql.raw(rowIsElsewhere({ schema, name })).as(ELSEWHERE) };
}

/** Throws if a row is of a table in another schema. Answers the rows without `ELSEWHERE`. */
export function inOwnSchema(claimable: Claimable, rows: readonly AnyRow[]): AnyRow[] {
  return rows.map(({ [ELSEWHERE]: elsewhere, ...row }) => {
    if (elsewhere === true) throw foundElsewhere(claimable);
    return row;
  });
}

export const foundElsewhere = ({ name }: Claimable): Error =>
  invalidArgument(
    "tables",
    `has ${name}, which the search path finds in another schema than ${own}: name its schema, and give ` +
      "each schema's table its own `source`",
  );
