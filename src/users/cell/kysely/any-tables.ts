import type { Kysely } from "kysely";

/** Stands for the `Database` interface of the application, where the table is only known at run time. */
export type AnyTables = Record<string, Record<string, unknown>>;

export const withAnyTables = <DB>(db: Kysely<DB>): Kysely<AnyTables> => db as unknown as Kysely<AnyTables>;
