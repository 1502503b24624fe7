import { causesOf } from "../causes.ts";

interface PgError {
  code: string;
  severity: string;
  error: Error;
}

/**
 * Errors of the server have a severity. `EPIPE` looks like a SQLSTATE too, but proves nothing about a COMMIT.
 */
function pgErrorOf(error: unknown): PgError | undefined {
  for (const cause of causesOf(error)) {
    const { code, severity } = cause as { code?: unknown; severity?: unknown };
    if (typeof code === "string" && /^[\dA-Z]{5}$/.test(code) && typeof severity === "string")
      return { code, severity, error: cause };
  }
  return undefined;
}

/**
 * SQLSTATE classes connection, resources, operator, system, configuration, internal. COMMIT may have
 * succeeded.
 */
const UNSURE_CLASSES: ReadonlySet<string> = new Set(["08", "53", "57", "58", "F0", "XX"]);
/** statement_completion_unknown */
const UNSURE_CODES: ReadonlySet<string> = new Set(["40003"]);

/**
 * Whether an error of COMMIT proves that nothing was saved. PostgreSQL checks deferred constraints and
 * conflicts before it writes the commit, and an ERROR there undoes everything. Any other error, above all a
 * lost connection, is an unknown outcome.
 */
export function isAbort(error: unknown): boolean {
  const found = pgErrorOf(error);
  if (found === undefined || found.severity === "FATAL" || found.severity === "PANIC") return false;
  return !UNSURE_CLASSES.has(found.code.slice(0, 2)) && !UNSURE_CODES.has(found.code);
}

/** lock_not_available */
export const isLockTimeout = (error: unknown): boolean => pgErrorOf(error)?.code === "55P03";

export interface UniqueViolation {
  schema: string;
  table: string;
  constraint: string;
  /** `Key (username)=(ada) already exists.`, in the language of the server. Empty if it is withheld. */
  detail: string;
}

/** unique_violation */
export function uniqueViolationOf(error: unknown): UniqueViolation | undefined {
  const found = pgErrorOf(error);
  if (found?.code !== "23505") return undefined;
  // postgres-js has the names of the protocol, and the other drivers shorter ones.
  const field = (...names: string[]): string =>
    names.map((name) => (found.error as unknown as Record<string, unknown>)[name]).find(isText) ?? "";
  return {
    schema: field("schema", "schema_name"),
    table: field("table", "table_name"),
    constraint: field("constraint", "constraint_name"),
    detail: field("detail"),
  };
}

const isText = (value: unknown): value is string => typeof value === "string";

/** undefined_table: the message names the table. */
export function missingTableOf(error: unknown): string | undefined {
  const found = pgErrorOf(error);
  return found?.code === "42P01" ? found.error.message : undefined;
}
