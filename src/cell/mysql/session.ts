/** What a connection can be asked and told beyond the statements of its rows. */
import { sql } from "drizzle-orm";
import { LeaseholdError } from "../../client/errors.ts";
import { isInsideTransaction, isMissingSavepoint } from "./failure.ts";
import type { Orm } from "./insert.ts";

const SAVEPOINT = "leasehold";

/**
 * Only MariaDB has a variable for it, so a statement is tried that both refuse while a transaction is open, and that changes nothing while none is:
 * the next one may write anyway.
 */
export async function isInTransaction(db: Orm): Promise<boolean> {
  try {
    await db.execute(sql`SET TRANSACTION READ WRITE`);
    return false;
  } catch (error) {
    if (isInsideTransaction(error)) return true;
    throw error;
  }
}

export async function setSavepoint(tx: Orm): Promise<void> {
  await tx.execute(sql.raw(`SAVEPOINT ${SAVEPOINT}`));
}

export async function releaseSavepoint(tx: Orm): Promise<void> {
  try {
    await tx.execute(sql.raw(`RELEASE SAVEPOINT ${SAVEPOINT}`));
  } catch (error) {
    throw isMissingSavepoint(error) ? endedEarly(error) : error;
  }
}

export const endedEarly = (cause?: unknown): Error =>
  new LeaseholdError(
    "the local transaction ended before its time: an error that undid it, such as a deadlock, was caught and not passed on, or a statement in it commits, such as DDL",
    { code: "TRANSACTION_ENDED", cause },
  );

/** The setting is the session's, and others use that afterwards. */
export async function withLockWait(tx: Orm, seconds: number, work: () => Promise<unknown>): Promise<void> {
  await tx.execute(
    sql.raw(
      `SET @leasehold_lock_wait = @@SESSION.innodb_lock_wait_timeout, SESSION innodb_lock_wait_timeout = ${seconds}`,
    ),
  );
  try {
    await work();
  } finally {
    await tx.execute(sql`SET SESSION innodb_lock_wait_timeout = @leasehold_lock_wait`);
  }
}
