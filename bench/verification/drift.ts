import type { RoutesDatabase } from "./database.ts";

/** One row in this many has drifted; 0 means none. */
export type Drift = 0 | 10 | 1_000;

/**
 * Changes rows directly in the database, so that the SDK does not see it. The rows are evenly spread: a third
 * gets another name, a third is deleted, and a third is spelled differently. Returns their number.
 */
export async function plantDrift(database: RoutesDatabase, every: Exclude<Drift, 0>): Promise<number> {
  const its = (third: number): string => `id % ${every} = 0 AND (id / ${every}) % 3 = ${third}`;
  const renamed = await database.query(`UPDATE routes SET path = path || '-moved' WHERE ${its(0)}`);
  const deleted = await database.query(`DELETE FROM routes WHERE ${its(1)}`);
  const respelled = await database.query(
    `UPDATE routes SET path = CASE path WHEN upper(path) THEN lower(path) ELSE upper(path) END
     WHERE ${its(2)}`,
  );
  return renamed + deleted + respelled;
}
