import { NamedTable, type AnyRow } from "../table.ts";
import type { ColumnValues, Condition } from "./condition.ts";

/** A table of a driver without a schema. A condition is an object of columns, or `condition(...)`. */
export type PlainTable<R extends object, N extends object> = NamedTable<R, N, ColumnValues<R> | Condition>;

/**
 * Names a table of the database, for a driver that knows no schema. Its columns are read from the database.
 *
 * @param name - The table's name, with its schema if it is not in the search path: `people` or `crm.people`.
 *
 * @example
 * ```ts
 * import { claimable } from "leasehold/cell";
 * import { table } from "leasehold/cell/pg";
 *
 * interface User {
 *   id: number;
 *   username: string;
 *   bio: string | null;
 * }
 * const users = table<User, { username: string; bio?: string }>("users");
 * const claimableUsers = claimable(users, {
 *   source: "RAILS_TABLE_USERS",
 *   subject: { type: "USER", id: "id" },
 *   attributes: { username: "USERNAMES" },
 * });
 * ```
 */
export const table = <R extends object = AnyRow, N extends object = Partial<R>>(
  name: string,
): PlainTable<R, N> => new NamedTable(name);
