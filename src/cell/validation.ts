import type { Conflict } from "../client/api-types.ts";
import type { LeaseholdError } from "../client/errors.ts";
import { causesOf } from "./causes.ts";
import type { ClaimBatch } from "./changes.ts";
import type { Claimable } from "./claimable.ts";
import { InvalidNameError, type Origin } from "./errors.ts";

/**
 * What to show at the field: the name is taken, may be free in a moment, cannot be a name, or failed
 * otherwise.
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

const fieldsByError = new WeakMap<object, readonly FieldError[]>();

/** Remembers the fields that an error is about, for `toValidationErrors`. */
export function rememberFields(error: unknown, fields: readonly FieldError[]): void {
  if (typeof error === "object" && error !== null) fieldsByError.set(error, fields);
}

const problems: Readonly<Record<string, FieldProblem>> = {
  taken: "taken",
  not_owner: "taken",
  leased: "try_again",
};

/**
 * Tells which fields an error of a transaction is about, each field of a row once. The list is empty when it
 * is about none: rethrow the error then.
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
    if (cause instanceof InvalidNameError) return [fieldError(cause.origin, "invalid")];
    const fields = fieldsByError.get(cause);
    if (fields !== undefined) return [...fields];
  }
  return [];
}

/** From the worst to the mildest. A retry may only solve the last. */
const severities: readonly FieldProblem[] = ["taken", "invalid", "failed", "try_again"];

/**
 * Keeps the worst problem of each field. A rename that meets another one has two conflicts: on the old name
 * and on the new one.
 */
function onePerField(errors: readonly FieldError[]): FieldError[] {
  const worst = new Map<string, FieldError>();
  for (const error of errors) {
    const key = JSON.stringify([error.table, error.field, error.id]);
    const other = worst.get(key);
    if (other === undefined || severities.indexOf(error.problem) < severities.indexOf(other.problem))
      worst.set(key, error);
  }
  return [...worst.values()];
}

/** The fields that an error of a begin is about, each field of a row once. */
export function fieldsOfBegin(error: LeaseholdError, origins: ClaimBatch["origins"]): FieldError[] {
  if (error.conflicts.length > 0)
    return onePerField(error.conflicts.flatMap((conflict) => conflicting(conflict, origins)));
  if (error.code === "INVALID_ARGUMENT") return invalid(error.field ?? "", origins);
  const isTemporary = error.retryable || !error.outcomeKnown;
  return isTemporary
    ? onePerField([...origins.creates, ...origins.replaces].map((origin) => fieldError(origin, "try_again")))
    : [];
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

/** The coordinator names the field of the batch, such as `creates[3].bucket.value`. */
function invalid(path: string, origins: ClaimBatch["origins"]): FieldError[] {
  const [, list, index] = /^(creates|destroys|replaces)\[(\d+)\]/.exec(path) ?? [];
  const origin = list === undefined ? undefined : origins[list as keyof ClaimBatch["origins"]][Number(index)];
  return origin === undefined ? [] : [fieldError(origin, "invalid")];
}

const fieldError = (
  { table, attribute, id }: Omit<Origin, "id"> & { id: string | undefined },
  problem: FieldProblem,
): FieldError => ({
  table,
  field: attribute,
  id,
  problem,
});
