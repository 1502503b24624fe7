import { getTableColumns, is, Table, type SQL } from "drizzle-orm";
import type { Claimable } from "../claimable.ts";
import { invalidArgument } from "../errors.ts";
import { requireOpen } from "../run-transaction.ts";
import {
  asItIs,
  type Connection,
  type SqlTable,
  type SqlTables,
  type TransactionConfig,
} from "./connection.ts";

/** A drizzle database, whatever its dialect and driver. */
interface DrizzleDatabase<Tx> {
  transaction<T>(body: (tx: Tx) => Promise<T>, config?: TransactionConfig): Promise<T>;
}

/** Sends statements with the application's own drizzle database. */
export function drizzleConnection<Tx, Orm>(db: DrizzleDatabase<Tx>): Connection<Tx, Orm> {
  // It sends SELECT to replicas, and reads decide between commit and rollback.
  if ("$replicas" in db)
    throw invalidArgument("db", "must be the primary: pass `db.$primary` of a database that has replicas");
  // It answers SELECT with earlier rows, also inside a transaction, if it does so for every query.
  const { $cache: cache } = db as { $cache?: { strategy?: () => string } };
  if (cache?.strategy?.() === "all")
    throw invalidArgument(
      "db",
      "must not answer every query from a cache: pass a drizzle database without `cache`, or one with the " +
        "strategy `explicit`",
    );
  return {
    orm: (tx) => {
      requireOpen(tx);
      return (tx ?? db) as Orm;
    },
    transaction: (body, config) => db.transaction(body, config),
    describeError: asItIs,
  };
}

/** Tables that the application declares with drizzle. */
export const drizzleTables: SqlTables<unknown> = {
  of: async (_tx, claimable) => drizzleTable(claimable),
  condition: (_table, where) => where as SQL | undefined,
};

export function drizzleTable(claimable: Claimable): SqlTable {
  const { table, name, idName } = claimable;
  if (!is(table, Table))
    throw invalidArgument("tables", `has ${name}, which is not a table of drizzle, as this database needs`);
  const idColumn = getTableColumns(table)[idName];
  if (idColumn === undefined) throw new Error(`${name} has no column ${idName}`);
  return { claimable, table, idColumn };
}
