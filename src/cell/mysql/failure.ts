import { causesOf } from "../causes.ts";

/** The server's own number. The system's errors have one as well, but no SQLSTATE. */
function errnoOf(error: unknown): number | undefined {
  for (const cause of causesOf(error)) {
    const { errno, sqlState } = cause as { errno?: unknown; sqlState?: unknown };
    if (typeof errno === "number" && typeof sqlState === "string") return errno;
  }
  return undefined;
}

const DUPLICATE_KEY = 1062;
const LOCK_WAIT_TIMEOUT = 1205;
const DEADLOCK = 1213;
const READ_ONLY_SERVER = 1290;
const NO_SUCH_SAVEPOINT = 1305;
const INSIDE_TRANSACTION = 1568;
const ROLLED_BACK_DURING_COMMIT = 3101;

/**
 * Answers to COMMIT that come before anything is written, and with a rollback: the wait for a lock on all commits (a backup's), a cluster that found
 * a conflict (Galera, group replication), and a server that became read-only meanwhile. After all else nobody knows, lost connections above all: an
 * error of the log of transactions for instance may come before or after the commit in InnoDB.
 */
const ABORTS: ReadonlySet<number | undefined> = new Set([
  LOCK_WAIT_TIMEOUT,
  DEADLOCK,
  READ_ONLY_SERVER,
  ROLLED_BACK_DURING_COMMIT,
]);

/** Whether the error that answered COMMIT means that nothing was saved. */
export const isAbort = (error: unknown): boolean => ABORTS.has(errnoOf(error));

/** Another transaction has the row, for longer than was to be waited, or waits for this one. */
export const isLockConflict = (error: unknown): boolean =>
  [LOCK_WAIT_TIMEOUT, DEADLOCK].includes(errnoOf(error) ?? 0);

export const isDuplicateKey = (error: unknown): boolean => errnoOf(error) === DUPLICATE_KEY;

export const isMissingSavepoint = (error: unknown): boolean => errnoOf(error) === NO_SUCH_SAVEPOINT;

/** Said by a statement that is not allowed while a transaction is open. */
export const isInsideTransaction = (error: unknown): boolean => errnoOf(error) === INSIDE_TRANSACTION;
