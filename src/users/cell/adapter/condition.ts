import {
  and,
  eq,
  getTableColumns,
  inArray,
  is,
  isNull,
  or,
  sql,
  SQL,
  type Column,
  type Table,
} from "drizzle-orm";
import { MySqlTable } from "drizzle-orm/mysql-core";
import { invalidArgument } from "../errors.ts";
import type { SqlTable } from "../sql/connection.ts";
import { NamedTable, type AnyRow } from "../table.ts";

/** A condition as SQL with bound values. */
export class Condition {
  readonly text: string;
  readonly values: readonly unknown[];

  constructor(text: string, values: readonly unknown[]) {
    this.text = text;
    this.values = values;
  }
}

/**
 * Makes a condition from SQL, for what an object of columns cannot express.
 *
 * @param text - SQL with `$1`, `$2`, ... for the values, on every database. Column names are those of the
 * database. Comments, dollar quotes and backslashes in quotes are refused, because databases read them in
 * different ways: pass such texts as values.
 *
 * @example
 * ```ts
 * import { condition, table } from "leasehold/cell/pg";
 *
 * const sessions = table<{ id: string; seen_at: Date }>("sessions");
 * const stale = condition("seen_at < $1", [new Date("2026-01-01")]);
 * await cell.transaction((tx) => tx.delete(sessions, stale));
 * ```
 */
export const condition = (text: string, values: readonly unknown[] = []): Condition =>
  new Condition(text, values);

/** All of the columns have these values. An array means one of its values, and null matches null. */
export type ColumnValues<R> = { [Name in keyof R]?: R[Name] | readonly R[Name][] };

/** Writes the condition of a table that is known by its name. */
export function conditionOf({ table, claimable }: SqlTable, where: unknown): SQL | undefined {
  if (where === undefined || is(where, SQL)) return where;
  if (where instanceof Condition) return withValues(where, table);
  const columns = getTableColumns(table);
  return and(
    ...columnValuesOf(where, "condition(...)").map(([name, value]) => {
      const column = columns[name];
      if (column === undefined)
        throw invalidArgument("where", `names ${name}, which is not a column of ${claimable.name}`);
      return matching(column, value);
    }),
  );
}

/**
 * Answers the columns of a condition and their values.
 *
 * @param others - What else a condition may be, for the error's message.
 */
export function columnValuesOf(where: unknown, others: string): [string, unknown][] {
  // Other objects, such as a promise, may have no properties, and would match all rows.
  if (!isPlainObject(where))
    throw invalidArgument("where", `must be an object of columns, ${others}, or undefined for all rows`);
  const columns = Object.entries(where);
  // Otherwise a misspelled variable would match all rows.
  const missing = columns.find(([, value]) => value === undefined);
  if (missing !== undefined)
    throw invalidArgument("where", `has no value for ${missing[0]}: use null, or leave the column out`);
  return columns;
}

function isPlainObject(value: unknown): value is object {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

function matching(column: Column, value: unknown): SQL | undefined {
  if (value === null) return isNull(column);
  if (!Array.isArray(value)) return eq(column, value);
  const isOneOf = inArray(
    column,
    value.filter((each) => each !== null),
  );
  return value.includes(null) ? or(isOneOf, isNull(column)) : isOneOf;
}

/** Quoted texts and names, and the places of values. */
const TOKENS = /('(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`|\$\d+)/;

/** Replaces `$1`, `$2`, ... outside of quotes by the values. */
function withValues({ text, values }: Condition, table: Table): SQL {
  const isMysql = is(table, MySqlTable);
  // Before version 3.17, mysql2 puts values in the place of question marks in quotes, too.
  if (isMysql && text.includes("?"))
    throw invalidArgument("where", "must not contain a question mark: use $1, and pass texts as values");
  const chunks = text.split(TOKENS).map((part) => {
    if (!/^\$\d+$/.test(part)) return sql.raw(plain(part, isMysql));
    const index = Number(part.slice(1)) - 1;
    if (index < 0 || index >= values.length)
      throw invalidArgument("where", `uses ${part}, and has ${values.length} values`);
    if (values[index] === undefined) throw invalidArgument("where", `has no value for ${part}: use null`);
    // An array is one value too, for `= ANY($1)`.
    return sql`${sql.param(values[index])}`;
  });
  return sql`(${sql.join(chunks)})`;
}

/** Refuses comments and texts whose end depends on the database, because a `$1` could be a part of them. */
function plain(part: string, isMysql: boolean): string {
  const isQuoted = /^['"`]/.test(part);
  // PostgreSQL has operators with a hash.
  const isComment = isMysql && !isQuoted && part.includes("#");
  const odd = isQuoted ? part.includes("\\") : /--|\/\*|\$\w*\$|['"`]/.test(part);
  if (!odd && !isComment) return part;
  throw invalidArgument(
    "where",
    "must not contain comments, dollar quotes, open quotes, or backslashes in quotes: pass texts as values",
  );
}

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
