import { isLeaseholdError, type LeaseholdError } from "../client/errors.ts";
import type { Conflict } from "../client/api-types.ts";
import type { ClaimBatch, Origin } from "./changes.ts";
import { BulkError, InvalidNameError } from "./errors.ts";

/** What to tell the person at the form: it is taken, it may work in a moment, it can be no name, or something else is wrong with it. */
export type FieldProblem = "taken" | "try_again" | "invalid" | "failed";

export interface FieldError {
  table: string;
  /** The column. */
  field: string;
  /** Of the row. */
  id: string;
  problem: FieldProblem;
}

const known = new WeakMap<LeaseholdError, ClaimBatch["origins"]>();

/** So that the error can be told field by field. */
export function rememberOrigins(error: unknown, origins: ClaimBatch["origins"] | undefined): void {
  if (origins !== undefined && isLeaseholdError(error)) known.set(error, origins);
}

const problems: Readonly<Record<string, FieldProblem>> = {
  taken: "taken",
  not_owner: "taken",
  leased: "try_again",
};

/**
 * Tells which fields an error of a transaction is about. The list is empty when it is about none: rethrow the
 * error then.
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
  if (error instanceof BulkError) return toValidationErrors(error.cause);
  if (error instanceof InvalidNameError) return [fieldError(error.origin, "invalid")];
  if (!isLeaseholdError(error)) return [];
  const origins = known.get(error);
  if (origins === undefined) return [];
  if (error.conflicts.length > 0)
    return error.conflicts.flatMap((conflict) => conflicting(conflict, origins));
  if (error.code === "INVALID_ARGUMENT") return invalid(error.field ?? "", origins);
  const isTemporary = error.retryable || !error.outcomeKnown;
  return isTemporary
    ? [...origins.creates, ...origins.replaces].map((origin) => fieldError(origin, "try_again"))
    : [];
}

function conflicting({ list, index, kind }: Conflict, origins: ClaimBatch["origins"]): FieldError[] {
  const origin = origins[list][index];
  return origin === undefined ? [] : [fieldError(origin, problems[kind] ?? "failed")];
}

/** The coordinator names the place in the batch: `creates[3].bucket.value`. */
function invalid(place: string, origins: ClaimBatch["origins"]): FieldError[] {
  const [, list, index] = /^(creates|destroys|replaces)\[(\d+)\]/.exec(place) ?? [];
  const origin = list === undefined ? undefined : origins[list as keyof ClaimBatch["origins"]][Number(index)];
  return origin === undefined ? [] : [fieldError(origin, "invalid")];
}

const fieldError = ({ table, attribute, id }: Origin, problem: FieldProblem): FieldError => ({
  table,
  field: attribute,
  id,
  problem,
});
