import type { MySqlDatabase, MySqlQueryResultHKT, PreparedQueryHKTBase } from "drizzle-orm/mysql-core";
import { requireOpen } from "../run-transaction.ts";

export type Orm = MySqlDatabase<MySqlQueryResultHKT, PreparedQueryHKTBase>;

/** The drivers share the methods that are used here. */
export function ormOf(db: unknown): Orm {
  requireOpen(db);
  return db as Orm;
}
