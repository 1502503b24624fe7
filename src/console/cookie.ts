import { SESSION_S } from "../auth/console-sessions.ts";
import { isLoopback } from "./origin.ts";

/**
 * With the prefix, no other host can set the cookie, and browsers keep it only over TLS. On the loopback
 * interface there is no TLS, and not every browser makes an exception for it.
 */
const nameFor = (request: Request): string =>
  isLoopback(request) ? "leasehold-console" : "__Host-leasehold-console";

const attributesFor = (request: Request): string =>
  `Path=/; HttpOnly; SameSite=Strict${isLoopback(request) ? "" : "; Secure"}`;

export function sessionTextOf(request: Request): string | undefined {
  const name = `${nameFor(request)}=`;
  const pairs = (request.headers.get("cookie") ?? "").split(/; */);
  return pairs.find((pair) => pair.startsWith(name))?.slice(name.length);
}

export const sessionCookie = (request: Request, text: string): string =>
  `${nameFor(request)}=${text}; Max-Age=${SESSION_S}; ${attributesFor(request)}`;

export const endedCookie = (request: Request): string =>
  `${nameFor(request)}=; Max-Age=0; ${attributesFor(request)}`;
