import type { PgDatabase, PgQueryResultHKT } from "drizzle-orm/pg-core";
import { requireOpen } from "../run-transaction.ts";

export type Orm = PgDatabase<PgQueryResultHKT>;

/** The drivers share the methods that are used here. */
export function ormOf(db: unknown): Orm {
  requireOpen(db);
  return db as Orm;
}
