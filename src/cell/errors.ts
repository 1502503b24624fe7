import type { Origin } from "./changes.ts";
import {
  InvalidArgumentError,
  isLeaseholdError,
  LeaseholdError,
  type LeaseholdErrorName,
} from "../client/errors.ts";

export const invalidArgument = (field: string, message: string): InvalidArgumentError =>
  new InvalidArgumentError(`\`${field}\` ${message}`, { code: "INVALID_ARGUMENT", field });

/** A value that cannot be claimed, found before anybody was asked. */
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
 * The answer to the local COMMIT got lost: whether the rows were saved only the database knows. Nothing was done about the lease; the next
 * reconciliation reads the database and commits or rolls back. Tell the user that it is not known, or look.
 */
export class LocalCommitUnknownError extends LeaseholdError {
  override readonly name: LeaseholdErrorName = "LocalCommitUnknownError";
  constructor(cause: unknown, leaseUuid: string | undefined) {
    const why = cause instanceof Error ? cause.message : String(cause);
    super(`whether the local transaction was saved is not known: ${why}`, {
      code: "UNKNOWN_COMMIT",
      cause,
      outcomeKnown: false,
      leaseUuid,
    });
  }
}

/** The database said that it committed, and nothing was saved: an error inside the transaction was swallowed. The lease was rolled back. */
export class NotSavedError extends LeaseholdError {
  override readonly name: LeaseholdErrorName = "NotSavedError";
  constructor() {
    super(
      "the local transaction was not saved: the database rolled it back, because an error inside it was caught and not passed on",
      {
        code: "NOT_SAVED",
      },
    );
  }
}

/** A chunk of a bulk change failed. What came before it is saved and stays; the `cause` says why. */
export class BulkError extends LeaseholdError {
  override readonly name: LeaseholdErrorName = "BulkError";
  /** Of the chunks that were saved. */
  readonly recordsDone: number;
  readonly chunksDone: number;

  constructor(cause: unknown, { recordsDone, chunksDone }: { recordsDone: number; chunksDone: number }) {
    const why = cause instanceof Error ? cause.message : String(cause);
    const code = isLeaseholdError(cause) ? cause.code : "BULK_FAILED";
    const { conflicts = [], outcomeKnown = true, leaseUuid } = isLeaseholdError(cause) ? cause : {};
    super(`after ${recordsDone} records in ${chunksDone} chunks: ${why}`, {
      code,
      cause,
      conflicts,
      outcomeKnown,
      leaseUuid,
    });
    this.recordsDone = recordsDone;
    this.chunksDone = chunksDone;
  }
}
