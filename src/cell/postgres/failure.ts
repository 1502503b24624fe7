import { causesOf } from "../causes.ts";

interface PgError {
  code: string;
  severity: string;
}

/** The server's own, which have a severity: `EPIPE` of a connection looks like a SQLSTATE too, and says nothing of what became of a COMMIT. */
function pgErrorOf(error: unknown): PgError | undefined {
  for (const cause of causesOf(error)) {
    const { code, severity } = cause as { code?: unknown; severity?: unknown };
    if (typeof code === "string" && /^[\dA-Z]{5}$/.test(code) && typeof severity === "string")
      return { code, severity };
  }
  return undefined;
}

/** Of SQLSTATE: connection, resources, operator, system, configuration, internal. After those nobody knows whether COMMIT was written. */
const UNSURE_CLASSES: ReadonlySet<string> = new Set(["08", "53", "57", "58", "F0", "XX"]);
/** statement_completion_unknown says it itself. */
const UNSURE_CODES: ReadonlySet<string> = new Set(["40003"]);

/**
 * Whether the error that answered COMMIT means that nothing was saved: PostgreSQL checks what was deferred, constraints and conflicts, before it writes
 * the commit, and an ERROR there undoes everything. All else, lost connections above all, is an unknown outcome.
 */
export function isAbort(error: unknown): boolean {
  const found = pgErrorOf(error);
  if (found === undefined || found.severity === "FATAL" || found.severity === "PANIC") return false;
  return !UNSURE_CLASSES.has(found.code.slice(0, 2)) && !UNSURE_CODES.has(found.code);
}

/** lock_not_available */
export const isLockTimeout = (error: unknown): boolean => pgErrorOf(error)?.code === "55P03";
