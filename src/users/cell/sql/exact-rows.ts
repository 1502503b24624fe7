import { sql } from "drizzle-orm";
import type { Claimable } from "../claimable.ts";
import type { AnyRow } from "../table.ts";
import { sqlOrm } from "./orm.ts";

/**
 * Throws if an id, subject or scope may have been rounded. The driver is asked only if a row has a `bigint`
 * that a number could not hold: an ORM may have made it of a number of the driver.
 */
export async function checkExact(
  claimable: Claimable,
  rows: readonly AnyRow[],
  rounds: () => Promise<boolean>,
): Promise<void> {
  const isRounding = rows.some((row) => claimable.hasLarge(row)) && (await rounds());
  for (const row of rows) claimable.checkExact(row, isRounding);
}

/** Whether the driver reads integers of 64 bits as numbers, which cannot hold 2^53 + 1. */
export async function roundsIntegers(orm: unknown): Promise<boolean> {
  const [read] = await sqlOrm(orm)
    .select<{ value: unknown }>({ value: sql`9007199254740993`.as("large_integer") })
    .from(sql`(SELECT 1) AS one`);
  return typeof read?.value === "number";
}
