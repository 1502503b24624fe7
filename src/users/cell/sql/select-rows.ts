import { asc, inArray } from "drizzle-orm";
import type { Selection } from "../local.ts";
import type { AnyRow } from "../table.ts";
import type { SelectOptions, SqlTable, SqlTables } from "./connection.ts";
import { sqlOrm, type Fields } from "./orm.ts";

/** Locks in the order of ids, so that two transactions over the same rows don't deadlock. */
export async function selectRows<Tx>(
  orm: unknown,
  tables: SqlTables<Tx>,
  its: SqlTable,
  selection: Selection,
  { limit, isLocking }: SelectOptions,
  columns?: Fields<AnyRow>,
): Promise<AnyRow[]> {
  const condition =
    "ids" in selection ? inArray(its.idColumn, [...selection.ids]) : tables.condition(its, selection.where);
  const rows = sqlOrm(orm)
    .select<AnyRow>(columns)
    .from(its.table)
    .where(condition)
    .orderBy(asc(its.idColumn));
  const limited = limit === undefined ? rows : rows.limit(limit);
  return isLocking ? limited.for("update") : limited;
}
