import type { Conflict } from "../client/api-types.ts";
import type { LeaseholdError, LeaseholdErrorDetails, LeaseholdErrorName } from "../client/errors.ts";
import type { ClaimBatch } from "./changes.ts";
import type { Claimable } from "./claimable.ts";
import {
  causesOf,
  fieldError,
  fieldsOf,
  InvalidNameError,
  onePerField,
  rememberFields,
  type FieldError,
  type FieldProblem,
} from "./errors.ts";

const problems: Readonly<Record<string, FieldProblem>> = {
  taken: "taken",
  not_owner: "taken",
  leased: "try_again",
};

/**
 * Tells which fields an error of a transaction is about, each field of a row once. The list is empty when it
 * is about none: rethrow the error then. It is always empty when the rows may be saved
 * (`LocalCommitUnknownError`): show the user the rows as they are now.
 *
 * @example
 * ```ts
 * import { toValidationErrors } from "leasehold/cell";
 *
 * const errors: Record<string, string> = {};
 * try {
 *   await cell.transaction((tx) => tx.insert(users, { username: "ada" }));
 * } catch (error) {
 *   const fields = toValidationErrors(error);
 *   if (fields.length === 0) throw error;
 *   for (const { field, problem } of fields)
 *     errors[field] = problem === "taken" ? "has already been taken" : "try again";
 * }
 * ```
 */
export function toValidationErrors(error: unknown): FieldError[] {
  for (const cause of causesOf(error)) {
    const fields = fieldsOf(cause);
    if (fields !== undefined) return [...fields];
    if (cause instanceof InvalidNameError) return [fieldError(cause.origin, "invalid")];
  }
  return [];
}

/** What an error means for the fields whose names the transaction would claim. */
type Meaning =
  /** Nothing: the caller has to tell the user something else. */
  | "nothing"
  /** All of them have this problem. */
  | "try_again"
  | "failed"
  /** All of them may try again if the error is retryable. Otherwise only an operator can help. */
  | "by_retryable"
  /** The coordinator refused a name of this transaction. */
  | "name"
  /** No user can correct it, so an operator must. */
  | "operator";

const meanings: Readonly<Record<LeaseholdErrorName, Meaning>> = {
  UnavailableError: "try_again",
  TimeoutError: "try_again",
  // A reconciliation or an operator rolled the lease back. The next one may be granted.
  LeaseRolledBackError: "try_again",
  // An operator has stopped changes of names in this cell, and knows it.
  CellFrozenError: "failed",
  CellDrainingError: "failed",
  // Without a time to wait, the batch is too large.
  ResourceExhaustedError: "by_retryable",
  // A code that a newer coordinator has.
  LeaseholdError: "by_retryable",
  InvalidArgumentError: "name",
  InvalidNameError: "name",
  UnauthenticatedError: "operator",
  PermissionDeniedError: "operator",
  NotFoundError: "operator",
  FailedPreconditionError: "operator",
  LeaseCommittedError: "operator",
  LeaseIdReusedError: "operator",
  // These have conflicts, which say what the problem is.
  AlreadyClaimedError: "operator",
  ClaimLeasedError: "operator",
  NotOwnerError: "operator",
  ClaimMismatchError: "operator",
  // The rows may be saved. Whoever sends the form again may be told that their own row has the name.
  LocalCommitUnknownError: "nothing",
  // The application ended the call itself.
  CancelledError: "nothing",
  // Not of a begin.
  NotSavedError: "nothing",
  NotInstalledError: "nothing",
  BulkError: "nothing",
  StaleEpochError: "nothing",
  ReportPrunedError: "nothing",
  ChangesPrunedError: "nothing",
};

/**
 * The fields that an error of a begin is about, each field of a row once. Undefined: no user can correct it,
 * so an operator must.
 */
export function fieldsOfBegin(
  error: LeaseholdError,
  origins: ClaimBatch["origins"],
): FieldError[] | undefined {
  if (error.conflicts.length > 0)
    return onePerField(error.conflicts.flatMap((conflict) => conflicting(conflict, origins)));
  const all = (problem: FieldProblem): FieldError[] =>
    onePerField([...origins.creates, ...origins.replaces].map((origin) => fieldError(origin, problem)));
  // A newer copy of the package may have made the error.
  const meaning = meanings[error.name] as Meaning | undefined;
  switch (meaning) {
    case "nothing":
      return [];
    case "try_again":
    case "failed":
      return all(meaning);
    case "name":
      return invalidName(error.field ?? "", origins);
    case "operator":
      return undefined;
    default:
      return error.retryable ? all("try_again") : undefined;
  }
}

/** The claimed columns of a unique key that refused a row. */
export const fieldsOfDuplicate = (
  { name, attributes }: Claimable,
  columns: readonly string[],
  id: string | undefined,
): FieldError[] =>
  attributes
    .filter((attribute) => columns.includes(attribute.name))
    .map((attribute) => fieldError({ table: name, attribute: attribute.name, id }, "taken"));

function conflicting({ list, index, kind }: Conflict, origins: ClaimBatch["origins"]): FieldError[] {
  const origin = origins[list][index];
  return origin === undefined ? [] : [fieldError(origin, problems[kind] ?? "failed")];
}

/**
 * The coordinator names the field of the batch. Only the value of a new name comes from a user: types, ids
 * and scopes come from the application, and an older coordinator may not know a field at all.
 */
function invalidName(path: string, origins: ClaimBatch["origins"]): FieldError[] | undefined {
  const [, list, index] = /^(creates|replaces)\[(\d+)\]\.bucket\.value$/.exec(path) ?? [];
  const origin = list === undefined ? undefined : origins[list as "creates" | "replaces"][Number(index)];
  return origin === undefined ? undefined : [fieldError(origin, "invalid")];
}

type ErrorClass = new (message: string, details: LeaseholdErrorDetails) => LeaseholdError;

/** How many fields a message lists. `toValidationErrors` gives all. */
const LISTED = 3;

const words: Readonly<Record<Exclude<FieldProblem, "invalid">, string>> = {
  taken: "is already claimed",
  try_again: "is being changed by another transaction",
  failed: "is not claimed as the row says, which verification repairs",
};

/**
 * The error of a begin, with the column in `field` and in the message. The coordinator knows only the place
 * in the batch.
 *
 * @param needsOperator called if no user can correct what is wrong
 */
export function namingFields(
  error: LeaseholdError,
  origins: ClaimBatch["origins"],
  needsOperator: () => void,
): LeaseholdError {
  const fields = fieldsOfBegin(error, origins);
  if (fields === undefined) {
    needsOperator();
    return error;
  }
  const isAboutFields = error.conflicts.length > 0 || error.code === "INVALID_ARGUMENT";
  const [first] = fields;
  if (first === undefined || !isAboutFields) {
    rememberFields(error, fields);
    return error;
  }
  const details: LeaseholdErrorDetails = error;
  const named = new (error.constructor as ErrorClass)(messageFor(fields, detailOf(error)), {
    ...details,
    field: first.field,
    cause: error.cause,
  });
  rememberFields(named, fields);
  return named;
}

/** Without the place in the batch, which the caller doesn't know. */
const detailOf = ({ message, field }: LeaseholdError): string => message.replace(`\`${field}\`: `, "");

function messageFor(fields: readonly FieldError[], detail: string): string {
  const listed = fields.slice(0, LISTED).map(({ table, field, id, problem }) => {
    const what = `\`${field}\` of ${table} ${id}`;
    return problem === "invalid" ? `${what}: ${detail}` : `${what} ${words[problem]}`;
  });
  const more = fields.length - listed.length;
  return `${listed.join(", ")}${more > 0 ? `, and ${more} more` : ""}`;
}
