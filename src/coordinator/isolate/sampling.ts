import type { Trace } from "../api/trace.ts";

/**
 * Returns whether a request gets a line in the log: every failure of the service and every change by an
 * operator does. Of the others, it is a share at random. A caller must not be able to choose its requests
 * into the log or out of it, so nothing that it sends has a say.
 */
export function isLogged(
  { principal }: Pick<Trace, "principal">,
  method: string,
  status: number,
  share: number,
): boolean {
  if (status >= 500) return true;
  if (principal?.role === "operator" && !READS.has(method)) return true;
  return Math.random() < share;
}

const READS: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS"]);
