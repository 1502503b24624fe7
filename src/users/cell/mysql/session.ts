/** Statements about a connection and its transaction. */
import { sql, type SQL } from "drizzle-orm";
import type { DescribeError } from "../sql/connection.ts";
import { isInsideTransaction, isMissingSavepoint } from "./failure.ts";
import type { Orm } from "./schema.ts";

/** Pools have `getConnection`. Nothing is assumed about other drivers. */
export function isSingleConnection(db: object): boolean {
  const { $client: client } = db as { $client?: unknown };
  return (
    typeof client === "object" &&
    client !== null &&
    "beginTransaction" in client &&
    !("getConnection" in client)
  );
}

/** Counts the rows that were found, even if unchanged, because mysql2 sets CLIENT_FOUND_ROWS. */
export async function affectedRows(statement: PromiseLike<unknown>): Promise<number> {
  const [{ affectedRows: count }] = (await statement) as [{ affectedRows: number }];
  return count;
}

const SAVEPOINT = "leasehold";

/**
 * Only MariaDB has a variable for this. Both databases refuse this statement while a transaction is open, and
 * otherwise it changes nothing, because READ WRITE is the default of the next transaction.
 */
export async function isInTransaction(db: Orm, describe: DescribeError): Promise<boolean> {
  try {
    await db.execute(sql`SET TRANSACTION READ WRITE`);
    return false;
  } catch (error) {
    if (isInsideTransaction(error, describe)) return true;
    throw error;
  }
}

/**
 * With other values, what the cell writes outside a transaction is not saved at once, or a query answers only
 * some of the rows that it asks for, and the others would count as gone.
 */
const SETTINGS = {
  autocommit: { read: "IF(@@SESSION.autocommit, 'ON', 'OFF')", usable: "ON" },
  completion_type: { read: "@@SESSION.completion_type", usable: "NO_CHAIN" },
  sql_select_limit: { read: "CAST(@@SESSION.sql_select_limit AS CHAR)", usable: "18446744073709551615" },
} as const;

/** Answers a sentence for each setting of the connection with which no row can be claimed. */
export async function sessionFaults(db: Orm): Promise<string[]> {
  const settings = Object.entries(SETTINGS);
  const fields = settings.map(([name, { read }]) => [name, sql<string>`${sql.raw(read)}`.as(`its_${name}`)]);
  const [session] = await db
    .select(Object.fromEntries(fields) as Record<string, SQL.Aliased<string>>)
    .from(sql`(SELECT 1) AS one`);
  return settings.flatMap(([name, { usable }]) => {
    const value = session?.[name];
    return value === usable
      ? []
      : [`cannot be claimed by connections with ${name} = ${value}: let the pool use ${name} = ${usable}`];
  });
}

export async function setSavepoint(tx: Orm): Promise<void> {
  await tx.execute(sql.raw(`SAVEPOINT ${SAVEPOINT}`));
}

/** Releases the savepoint. Answers false if it is gone, because its transaction has ended. */
export async function releaseSavepoint(tx: Orm, describe: DescribeError): Promise<boolean> {
  try {
    await tx.execute(sql.raw(`RELEASE SAVEPOINT ${SAVEPOINT}`));
    return true;
  } catch (error) {
    if (isMissingSavepoint(error, describe)) return false;
    throw error;
  }
}

/** Restores the setting afterwards, because other transactions use the same session. */
export async function withLockWait(tx: Orm, seconds: number, work: () => Promise<unknown>): Promise<void> {
  await tx.execute(
    sql.raw(
      "SET @leasehold_lock_wait = @@SESSION.innodb_lock_wait_timeout, " +
        `SESSION innodb_lock_wait_timeout = ${seconds}`,
    ),
  );
  try {
    await work();
  } finally {
    await tx.execute(sql`SET SESSION innodb_lock_wait_timeout = @leasehold_lock_wait`);
  }
}
