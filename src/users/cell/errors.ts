import { messageOf } from "../client/answer.ts";
import {
  InvalidArgumentError,
  isLeaseholdError,
  LeaseholdError,
  type LeaseholdErrorName,
} from "../client/errors.ts";

const MAX_DEPTH = 5;

/** An error and its causes, because drizzle wraps the errors of drivers. */
export function* causesOf(error: unknown): Generator<Error> {
  for (
    let each: unknown = error, depth = 0;
    each instanceof Error && depth < MAX_DEPTH;
    each = each.cause, depth += 1
  )
    yield each;
}

/**
 * Why something failed. An error of drizzle only repeats the statement with its values, which may be names of
 * people, so its cause says why.
 */
export function reasonOf(error: unknown): string {
  const isOfDrizzle = error instanceof Error && "query" in error && "params" in error;
  return messageOf(isOfDrizzle ? (error.cause ?? error) : error);
}

/** The field that an op came from, for validation errors. */
export interface Origin {
  table: string;
  attribute: string;
  /** The id of the row. */
  id: string;
}

/**
 * What to show at the field: the name is taken, may be saved in a moment, cannot be a name, or cannot be
 * changed until somebody else has done something.
 */
export type FieldProblem = "taken" | "try_again" | "invalid" | "failed";

export interface FieldError {
  table: string;
  /** The column. */
  field: string;
  /**
   * The id of the row. Undefined if the database refused the row before it had an id, or one of several rows.
   */
  id: string | undefined;
  problem: FieldProblem;
}

/** Why a row of a bulk insert was not saved. */
export interface RefusedInput {
  /** Its index in the rows that were given. */
  index: number;
  /** The claimed column. Undefined if a unique key of the database refused the row. */
  field: string | undefined;
  /** The value of that column. */
  value: string | undefined;
  problem: FieldProblem;
}

const fieldsByError = new WeakMap<object, readonly FieldError[]>();

/** Remembers the fields that an error is about, for `toValidationErrors`. */
export function rememberFields(error: unknown, fields: readonly FieldError[]): void {
  if (typeof error === "object" && error !== null) fieldsByError.set(error, fields);
}

/** The fields that were remembered for an error. */
export const fieldsOf = (error: object): readonly FieldError[] | undefined => fieldsByError.get(error);

/** From the worst to the mildest. A retry may only solve the last. */
const severities: readonly FieldProblem[] = ["taken", "invalid", "failed", "try_again"];

/**
 * Keeps the worst problem of each field. A rename that meets another one has two conflicts: on the old name
 * and on the new one.
 */
export function onePerField(errors: readonly FieldError[]): FieldError[] {
  const worst = new Map<string, FieldError>();
  for (const error of errors) {
    const key = JSON.stringify([error.table, error.field, error.id]);
    const other = worst.get(key);
    if (other === undefined || severities.indexOf(error.problem) < severities.indexOf(other.problem))
      worst.set(key, error);
  }
  return [...worst.values()];
}

export const fieldError = (
  { table, attribute, id }: Omit<Origin, "id"> & { id: string | undefined },
  problem: FieldProblem,
): FieldError => ({
  table,
  field: attribute,
  id,
  problem,
});

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

type Method = (...given: never[]) => unknown;
type CaptureStackTrace = (target: { stack?: string }, method: Method | undefined) => void;

/**
 * The place in the application from which a method was called. By the time that the method fails, drivers and
 * pools have often ended the chain of awaits, so the error's own stack does not reach that place.
 */
export class CallSite {
  readonly #captured: { stack?: string } = {};

  /** @param method - The public method of `object`. Frames from it inwards are left out. */
  constructor(object: object, method: string) {
    // Cheap, because the engine makes the text only when it is read. Not every engine has it.
    const { captureStackTrace } = Error as { captureStackTrace?: CaptureStackTrace };
    captureStackTrace?.(this.#captured, (object as Record<string, Method>)[method]);
  }

  /** Adds the call to the stack of an error, or shows it `instead` of the frames inside the SDK. */
  showIn(error: Error, { instead }: { instead: boolean }): void {
    const frames = this.#frames;
    if (frames === "") return;
    const [caller = ""] = frames.split("\n", 1);
    const stack = error.stack ?? "";
    if (instead) error.stack = `${error.name}: ${error.message}\n${frames}`;
    else if (!stack.includes(caller)) error.stack = `${stack}\n${frames}`;
  }

  /** The first line describes the captured object. */
  get #frames(): string {
    const { stack = "" } = this.#captured;
    const end = stack.indexOf("\n");
    return end === -1 ? "" : stack.slice(end + 1);
  }
}
