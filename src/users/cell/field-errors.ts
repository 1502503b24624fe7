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
