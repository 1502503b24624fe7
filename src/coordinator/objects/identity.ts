import { META_TABLE, readMeta, writeMeta } from "../kernel/meta.ts";
import type { Sql } from "../kernel/ports.ts";

export const ledgerName = (cell: string): string => `cell-${cell}`;
export const shardName = (index: number): string => `shard-${index}`;
export const DIRECTORY_NAME = "directory";

/** The id of an object. The platform does not always pass the object's name. */
export interface Named {
  readonly name?: string;
}

/**
 * Returns the cell or index in an object's name, `cell-<number>` or `shard-<number>`. The name is also stored
 * in the object's own database, because an instance that an alarm wakes does not get it (workerd issue 6850).
 */
export function numberInName(id: Named, sql: Sql, prefix: "cell" | "shard"): string {
  sql.all(META_TABLE);
  const kept = readMeta(sql, "object_name");
  const name = id.name ?? kept;
  const number =
    typeof name === "string" && name.startsWith(`${prefix}-`) ? name.slice(prefix.length + 1) : "";
  if (!/^\d+$/.test(number)) throw new Error(`an object of this class must be named ${prefix}-<number>`);
  if (kept === undefined)
    sql.transaction(["keep_name"], () => writeMeta(sql, "object_name", `${prefix}-${number}`));
  return number;
}
