/** Statements about a connection and its transaction. */
import { sql } from "drizzle-orm";
import { isInsideTransaction, isMissingSavepoint } from "./failure.ts";
import type { DescribeError } from "../sql/describe-error.ts";
import type { Orm } from "./orm.ts";

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
