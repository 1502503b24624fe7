import { causesOf } from "../causes.ts";

interface PgError {
  code: string;
  severity: string;
}

/**
 * Errors of the server have a severity. `EPIPE` looks like a SQLSTATE too, but proves nothing about a COMMIT.
 */
function pgErrorOf(error: unknown): PgError | undefined {
  for (const cause of causesOf(error)) {
    const { code, severity } = cause as { code?: unknown; severity?: unknown };
    if (typeof code === "string" && /^[\dA-Z]{5}$/.test(code) && typeof severity === "string")
      return { code, severity };
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
