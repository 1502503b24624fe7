import { sql, type SQL } from "drizzle-orm";

const SAVEPOINT = "leasehold_write";

/**
 * Undoes the writes of `work` if it fails or answers undefined. No other statement of the transaction may
 * come between them.
 */
export async function allOrNothing<T>(
  tx: { execute(statement: SQL): PromiseLike<unknown> },
  work: () => Promise<T>,
): Promise<T> {
  await tx.execute(sql.raw(`SAVEPOINT ${SAVEPOINT}`));
  try {
    const value = await work();
    if (value === undefined) await tx.execute(sql.raw(`ROLLBACK TO SAVEPOINT ${SAVEPOINT}`));
    await tx.execute(sql.raw(`RELEASE SAVEPOINT ${SAVEPOINT}`));
    return value;
  } catch (error) {
    // A deadlock has undone the whole transaction, and the savepoint with it.
    await Promise.resolve(tx.execute(sql.raw(`ROLLBACK TO SAVEPOINT ${SAVEPOINT}`))).catch(() => {});
    throw error;
  }
}
