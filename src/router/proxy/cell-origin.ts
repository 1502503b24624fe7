const LOCAL_HOSTS: ReadonlySet<string> = new Set(["localhost", "127.0.0.1", "[::1]"]);

/**
 * Returns the origin to send requests to, or null if the address of a cell cannot be used: it must be a bare
 * `https` origin, without path, query, user or fragment. A wrong address must not send the requests of users,
 * with their cookies, to another host or without encryption.
 *
 * @param allowLocalHttp also accepts `http` for hosts of this machine
 */
export function cellOrigin(address: string, allowLocalHttp: boolean): string | null {
  const url = URL.canParse(address) ? new URL(address) : null;
  if (url === null || (address !== url.origin && address !== `${url.origin}/`)) return null;
  if (url.protocol === "https:") return url.origin;
  return url.protocol === "http:" && allowLocalHttp && LOCAL_HOSTS.has(url.hostname) ? url.origin : null;
}
