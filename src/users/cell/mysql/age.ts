import { sql, type Column, type SQL } from "drizzle-orm";

/**
 * The age of a time in milliseconds. A DATETIME is in UTC, as drizzle writes it. A TIMESTAMP has a time zone.
 */
export function ageMsOf(time: Column): SQL<number> {
  const now = time.getSQLType().startsWith("timestamp") ? sql`NOW(3)` : sql`UTC_TIMESTAMP(3)`;
  // Drivers return decimals as text.
  return sql`TIMESTAMPDIFF(MICROSECOND, ${time}, ${now}) / 1000`.mapWith(Number);
}
