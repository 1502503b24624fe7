import { POSITION_COOKIE } from "../positions.ts";

/** Marks a client that was asked to send its request again, so that it is asked only once. */
export const REDIRECT_COOKIE = "Leasehold-Redirected";

const ROUTER_COOKIES: ReadonlySet<string> = new Set([POSITION_COOKIE, REDIRECT_COOKIE]);

/**
 * Returns a `Cookie` header without the cookies of the router, which mean nothing to a cell. Null if no
 * cookie is left.
 */
export function withoutRouterCookies(header: string | null): string | null {
  if (header === null) return null;
  const others = header.split(";").filter((cookie) => !ROUTER_COOKIES.has(nameOf(cookie)));
  return others.length === 0 ? null : others.join(";").trim();
}

/** Returns the value of a cookie, or null if there is none. */
export function cookieOf(header: string | null, name: string): string | null {
  const found = header?.split(";").find((cookie) => nameOf(cookie) === name);
  return found === undefined ? null : found.slice(found.indexOf("=") + 1).trim();
}

const nameOf = (cookie: string): string => (cookie.split("=")[0] ?? "").trim();
