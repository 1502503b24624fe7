import type { PgDatabase, PgQueryResultHKT } from "drizzle-orm/pg-core";
import type { CellDatabase } from "../../../../src/users/cell/local.ts";
import type { tables } from "./postgres-tables.ts";

/** PostgreSQL's types stand for all dialects. The tests use only what drizzle's dialects share. */
export type Orm = PgDatabase<PgQueryResultHKT>;
export type Tx = Parameters<Parameters<Orm["transaction"]>[0]>[0];
export type Tables = typeof tables;

/** The conformance suite's tables, and the SDK's database, with one of drizzle's dialects. */
export interface Dialect {
  name: "postgres" | "mysql";
  tables: Tables;
  database(orm: Orm): CellDatabase<Tx>;
}
