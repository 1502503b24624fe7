import {
  InvalidArgumentError,
  isLeaseholdError,
  LeaseholdError,
  type LeaseholdErrorName,
} from "../client/errors.ts";
import { reasonOf } from "./causes.ts";
import type { Origin, RefusedInput } from "./field-errors.ts";

export const invalidArgument = (field: string, message: string): InvalidArgumentError =>
  new InvalidArgumentError(`\`${field}\` ${message}`, { code: "INVALID_ARGUMENT", field });

/** A value that cannot be claimed. Found before a lease was begun. */
export class InvalidNameError extends InvalidArgumentError {
  override readonly name: LeaseholdErrorName = "InvalidNameError";
  readonly origin: Origin;

  constructor(origin: Origin, message: string) {
    super(`\`${origin.attribute}\` of ${origin.table} ${origin.id} ${message}`, {
      code: "INVALID_ARGUMENT",
      field: origin.attribute,
    });
    this.origin = origin;
  }
}

/**
 * The answer to the local COMMIT was lost, so the rows may or may not be saved. The lease is left to the next
 * reconciliation, which reads the database and commits or rolls back. Show the user that the outcome is
 * unknown, or read the rows again.
 */
export class LocalCommitUnknownError extends LeaseholdError {
  override readonly name: LeaseholdErrorName = "LocalCommitUnknownError";
  constructor(cause: unknown, leaseUuid: string | undefined) {
    super(`it is unknown whether the local transaction was saved: ${reasonOf(cause)}. Read the rows again`, {
      code: "UNKNOWN_COMMIT",
      cause,
      outcomeKnown: false,
      leaseUuid,
    });
  }
}

/**
 * The database rolled the local transaction back, and the driver reported no error of COMMIT. The lease was
 * rolled back. The `cause` is set if the body caught the error of a statement.
 */
export class NotSavedError extends LeaseholdError {
  override readonly name: LeaseholdErrorName = "NotSavedError";
  constructor(cause?: unknown) {
    super(`the local transaction was not saved: ${cause === undefined ? LOST_COMMIT : CAUGHT_ERROR}`, {
      code: "NOT_SAVED",
      cause,
    });
  }
}

const CAUGHT_ERROR =
  "the database rolled it back after an error that its body caught. Let database errors leave the body";
const LOST_COMMIT =
  "the driver reported a COMMIT that the database did not carry out. Behind PgBouncer or another pooler in " +
  "transaction mode, postgres.js needs the option `prepare: false`, because it prepares COMMIT too";

/**
 * The body ended the local transaction, so what it wrote may be saved without its claims. `leaseUuid` is the
 * lease that is left to reconciliation, if there is one.
 */
export const transactionEnded = (cause?: unknown, leaseUuid?: string): LeaseholdError =>
  new LeaseholdError(
    "the local transaction ended before its body did: the body caught an error that rolled it back, such " +
      "as a deadlock, or ran a statement that ends it (COMMIT, ROLLBACK, DDL). Let database errors leave " +
      "the body, and run no such statements in it",
    { code: "TRANSACTION_ENDED", cause, outcomeKnown: false, leaseUuid },
  );

/** The cell's own tables are missing in its database, or some of them. The `cause` is the driver's error. */
export class NotInstalledError extends LeaseholdError {
  override readonly name: LeaseholdErrorName = "NotInstalledError";
  constructor(table: string, cause: unknown) {
    super(
      `the cell's table ${table} does not exist in the database: call \`await cell.install()\` when the ` +
        "process starts, or run the statements of `migration` of leasehold/cell/postgres or " +
        "leasehold/cell/mysql",
      { code: "NOT_INSTALLED", cause },
    );
  }
}

interface BulkDone {
  recordsDone: number;
  chunksDone: number;
  refused?: readonly RefusedInput[];
}

/**
 * A chunk of a bulk change failed. The chunks before it are saved and stay. The `cause` says why it failed.
 */
export class BulkError extends LeaseholdError {
  override readonly name: LeaseholdErrorName = "BulkError";
  /** Records in the chunks that were saved. */
  readonly recordsDone: number;
  readonly chunksDone: number;
  /**
   * The rows of the failed chunk that were refused, if that is why it failed, and those that earlier chunks
   * have left out.
   */
  readonly refused: readonly RefusedInput[];

  constructor(cause: unknown, { recordsDone, chunksDone, refused = [] }: BulkDone) {
    const code = isLeaseholdError(cause) ? cause.code : "BULK_FAILED";
    const { conflicts = [], outcomeKnown = true, leaseUuid } = isLeaseholdError(cause) ? cause : {};
    super(`after ${recordsDone} records in ${chunksDone} chunks: ${reasonOf(cause)}`, {
      code,
      cause,
      conflicts,
      outcomeKnown,
      leaseUuid,
    });
    this.recordsDone = recordsDone;
    this.chunksDone = chunksDone;
    this.refused = refused;
  }
}
