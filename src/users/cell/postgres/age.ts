import { sql, type Column, type SQL } from "drizzle-orm";

/** The age of a time in milliseconds. A time without a zone is in UTC, as drizzle writes it. */
export function ageMsOf(time: Column): SQL<number> {
  const now = time.getSQLType().includes("with time zone")
    ? sql`clock_timestamp()`
    : sql`(clock_timestamp() AT TIME ZONE 'UTC')`;
  return sql<number>`(extract(epoch FROM ${now} - ${time}) * 1000)::float8`;
}
