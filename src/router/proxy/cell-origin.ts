import { originOf } from "../lookups/origin.ts";

/**
 * Returns the origin to send requests to, or null if the address of a cell cannot be used: it must be a bare
 * `https` origin, without path, query, user or fragment. A wrong address must not send the requests of users,
 * with their cookies, to another host or without encryption.
 *
 * @param allowLocalHttp also accepts `http` for hosts of this machine
 */
export function cellOrigin(address: string, allowLocalHttp: boolean): string | null {
  const origin = originOf(address);
  if (origin === undefined) return null;
  return allowLocalHttp || origin.startsWith("https:") ? origin : null;
}
