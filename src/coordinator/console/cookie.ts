import { SESSION_S } from "../auth/console-sessions.ts";
import type { Incoming } from "../api/incoming.ts";
import { isLoopback } from "./origin.ts";

/**
 * With the prefix, no other host can set the cookie, and browsers keep it only over TLS. On the loopback
 * interface there is no TLS, and not every browser makes an exception for it.
 */
const nameFor = (incoming: Incoming): string =>
  isLoopback(incoming) ? "leasehold-console" : "__Host-leasehold-console";

const attributesFor = (incoming: Incoming): string =>
  `Path=/; HttpOnly; SameSite=Strict${isLoopback(incoming) ? "" : "; Secure"}`;

export function sessionTextOf(incoming: Incoming): string | undefined {
  const name = `${nameFor(incoming)}=`;
  const pairs = (incoming.header("cookie") ?? "").split(/; */);
  return pairs.find((pair) => pair.startsWith(name))?.slice(name.length);
}

export const sessionCookie = (incoming: Incoming, text: string): string =>
  `${nameFor(incoming)}=${text}; Max-Age=${SESSION_S}; ${attributesFor(incoming)}`;

export const endedCookie = (incoming: Incoming): string =>
  `${nameFor(incoming)}=; Max-Age=0; ${attributesFor(incoming)}`;
