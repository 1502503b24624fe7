import { originOf } from "../lookups/origin.ts";

/** More addresses than this are read again and again. */
const MAX_KNOWN = 1_024;

/**
 * Returns a function that returns the origin to send requests to, or null if the address of a cell cannot be
 * used: it must be a bare `https` origin, without path, query, user or fragment. A wrong address must not
 * send the requests of users, with their cookies, to another host or without encryption.
 *
 * @param allowLocalHttp also accepts `http` for hosts of this machine
 */
export function cellOrigins(allowLocalHttp: boolean): (address: string) => string | null {
  // Every request needs one, and reading an address takes longer than finding it here.
  const known = new Map<string, string | null>();
  return (address) => {
    let origin = known.get(address);
    if (origin !== undefined) return origin;
    origin = cellOrigin(address, allowLocalHttp);
    if (known.size >= MAX_KNOWN) known.clear();
    known.set(address, origin);
    return origin;
  };
}

function cellOrigin(address: string, allowLocalHttp: boolean): string | null {
  const origin = originOf(address);
  if (origin === undefined) return null;
  return allowLocalHttp || origin.startsWith("https:") ? origin : null;
}
