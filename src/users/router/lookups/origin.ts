/** The names of this machine, to which a router may speak http. */
const LOCAL = new Set(["localhost", "127.0.0.1", "[::1]"]);
const MAX_LENGTH = 2_048;
const BARE = /^https?:\/\/[^\s\\/?#@]+\/?$/i;

/**
 * The origin that an address names, or undefined if a router must not use the address: it is an https origin
 * without a path, a query or credentials, or an http origin on this machine.
 */
export function originOf(address: string): string | undefined {
  if (address.length > MAX_LENGTH || !BARE.test(address) || !URL.canParse(address)) return undefined;
  const { protocol, hostname, origin } = new URL(address);
  return protocol === "https:" || LOCAL.has(hostname) ? origin : undefined;
}
