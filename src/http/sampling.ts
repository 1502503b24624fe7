import type { Trace } from "./trace.ts";

/**
 * Returns whether a request gets a line in the log: every failure of the service and every change by an
 * operator does. Of the others, it is a share of the request ids, so a retry with the same id gets the same
 * answer, and so does every service that samples in this way.
 */
export function isLogged(
  { requestId, principal }: Pick<Trace, "requestId" | "principal">,
  method: string,
  status: number,
  share: number,
): boolean {
  if (status >= 500) return true;
  if (principal?.role === "operator" && !READS.has(method)) return true;
  return fraction(requestId) < share;
}

const READS: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS"]);

/** Maps a text to a number from 0 to below 1, evenly: FNV-1a, then the last step of MurmurHash3. */
function fraction(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1)
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return ((hash ^ (hash >>> 16)) >>> 0) / 2 ** 32;
}
