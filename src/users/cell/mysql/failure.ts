import { getTableName } from "drizzle-orm";
import { getTableConfig, type MySqlTable } from "drizzle-orm/mysql-core";
import { causesOf } from "../errors.ts";
import type { DatabaseProblem } from "../local.ts";
import { asItIs, type DescribeError, type SqlTable } from "../sql/connection.ts";
import { columnsOfKey, nameInRow } from "../sql/unique-keys.ts";

/**
 * The error number of the server, and its message. Errors of the operating system have a number too, but no
 * SQLSTATE.
 */
function serverErrorOf(
  error: unknown,
  describe: DescribeError,
): { errno: number; message: string } | undefined {
  for (const cause of causesOf(error)) {
    const { errno, sqlState, message } = describe(cause) as Error & { errno?: unknown; sqlState?: unknown };
    if (typeof errno === "number" && typeof sqlState === "string") return { errno, message };
  }
  return undefined;
}

const errnoOf = (error: unknown, describe: DescribeError): number | undefined =>
  serverErrorOf(error, describe)?.errno;

const DUPLICATE_KEY = 1062;
const NO_SUCH_COLUMN = 1054;
const NO_SUCH_TABLE = 1146;
const LOCK_WAIT_TIMEOUT = 1205;
const DEADLOCK = 1213;
const READ_ONLY_SERVER = 1290;
const NO_SUCH_SAVEPOINT = 1305;
const INSIDE_TRANSACTION = 1568;
const ROLLED_BACK_DURING_COMMIT = 3101;

/**
 * Errors of COMMIT that prove a rollback: a timeout of the global commit lock (during a backup), a conflict
 * in a cluster (Galera, group replication), and a server that became read-only. Any other error is an unknown
 * outcome, above all a lost connection. For example, an error of the binary log may come before or after the
 * commit in InnoDB.
 */
const ABORTS: ReadonlySet<number | undefined> = new Set([
  LOCK_WAIT_TIMEOUT,
  DEADLOCK,
  READ_ONLY_SERVER,
  ROLLED_BACK_DURING_COMMIT,
]);

/** Whether the error that answered COMMIT means that nothing was saved. */
export const isAbort = (error: unknown, describe: DescribeError = asItIs): boolean =>
  ABORTS.has(errnoOf(error, describe));

/** A lock timeout or a deadlock. */
export const isLockConflict = (error: unknown, describe: DescribeError = asItIs): boolean =>
  [LOCK_WAIT_TIMEOUT, DEADLOCK].includes(errnoOf(error, describe) ?? 0);

/** It has undone the whole transaction. */
export const isDeadlock = (error: unknown, describe: DescribeError = asItIs): boolean =>
  errnoOf(error, describe) === DEADLOCK;

export const isDuplicateKey = (error: unknown, describe: DescribeError = asItIs): boolean =>
  errnoOf(error, describe) === DUPLICATE_KEY;

export const isMissingSavepoint = (error: unknown, describe: DescribeError = asItIs): boolean =>
  errnoOf(error, describe) === NO_SUCH_SAVEPOINT;

/** The error of a statement that is not allowed while a transaction is open. */
export const isInsideTransaction = (error: unknown, describe: DescribeError = asItIs): boolean =>
  errnoOf(error, describe) === INSIDE_TRANSACTION;

/**
 * The key of a violation: `users.users_username_unique` since MySQL 8.0.19, otherwise without the table. It
 * is the last text in quotes, whatever the language of the server. The first one is the value.
 */
export function duplicateKeyOf(error: unknown, describe: DescribeError = asItIs): string | undefined {
  const found = serverErrorOf(error, describe);
  return found?.errno === DUPLICATE_KEY ? /'([^']+)'[^']*$/.exec(found.message)?.[1] : undefined;
}

/** The statement that failed, which errors of drizzle and of mysql2 have. */
function statementOf(error: unknown): string | undefined {
  for (const cause of causesOf(error)) {
    const { query, sql } = cause as { query?: unknown; sql?: unknown };
    const statement = query ?? sql;
    if (typeof statement === "string") return statement;
  }
  return undefined;
}

/** Whether a table or a column does not exist. */
export const isMissingColumn = (error: unknown, describe: DescribeError): boolean =>
  [NO_SUCH_TABLE, NO_SUCH_COLUMN].includes(errnoOf(error, describe) ?? 0);

/** The message about a table that does not exist, which names it. */
export function missingTableOf(error: unknown, describe: DescribeError = asItIs): string | undefined {
  const found = serverErrorOf(error, describe);
  return found?.errno === NO_SUCH_TABLE ? found.message : undefined;
}

/**
 * Finds the claimable table and the columns whose unique key refused a row. The error names only the key, and
 * since MySQL 8.0.19 its table. MariaDB doesn't name the table, so it must be known from the write: as
 * `written`, or from the text of the statement.
 */
export function duplicateIn(
  tables: readonly SqlTable[],
  error: unknown,
  written: SqlTable | undefined,
  describe: DescribeError,
): DatabaseProblem | undefined {
  const key = duplicateKeyOf(error, describe);
  if (key === undefined) return undefined;
  const isIn = ({ table }: SqlTable): boolean => key.startsWith(`${getTableName(table)}.`);
  const target = targetOf(statementOf(error));
  const found = tables.find(isIn) ?? written ?? tables.find(({ table }) => getTableName(table) === target);
  if (found === undefined) return undefined;
  const { table, claimable } = found;
  const name = isIn(found) ? key.slice(getTableName(table).length + 1) : key;
  const columns =
    columnsOfKey(table, getTableConfig(table as MySqlTable), { name, primary: "PRIMARY" }) ??
    columnOfUnnamedKey(found, name);
  return { kind: "duplicate", table: claimable, columns };
}

/** MySQL names a key without a name after its first column: `email`, and `email_2` if that is taken. */
function columnOfUnnamedKey({ table }: SqlTable, key: string): string[] {
  const [whole] = nameInRow(table, key);
  return whole === undefined ? nameInRow(table, key.replace(/_\d+$/, "")) : [whole];
}

function targetOf(statement: string | undefined): string | undefined {
  const found = /^\s*(?:insert\s+into|update)\s+(?:(?:`[^`]+`|\w+)\.)?(?:`([^`]+)`|(\w+))/i.exec(
    statement ?? "",
  );
  return found?.[1] ?? found?.[2];
}
