import type { LeaseholdError, LeaseholdErrorDetails } from "../client/errors.ts";
import type { ClaimBatch } from "./changes.ts";
import { rememberFields, type FieldError, type FieldProblem } from "./field-errors.ts";
import { fieldsOfBegin } from "./validation.ts";

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
