/** Asks a client to send a request with a body again, because the router did not keep the body. */
import { positionCookie, type Positions } from "../positions.ts";
import { cookieOf, REDIRECT_COOKIE } from "./cookies.ts";

/**
 * Returns whether a client will come back with a cookie that it gets now. Without the cookie, another copy of
 * the router could send it to the wrong cell again, and again. Clients that send cookies or are browsers keep
 * cookies, except for requests from other sites, on which `SameSite=Lax` leaves them out. A client that was
 * sent back already is not sent back again.
 */
export function canSendAgain({ headers }: Request): boolean {
  const cookies = headers.get("cookie");
  if (cookieOf(cookies, REDIRECT_COOKIE) !== null || headers.get("sec-fetch-site") === "cross-site")
    return false;
  return cookies !== null || headers.has("sec-fetch-site");
}

const RULE_PREFIX = "rule:";

/** Returns the rule whose cell has refused this request before, according to the client's cookies. */
export function wrongRuleOf(cookies: string | null): string | null {
  const value = cookieOf(cookies, REDIRECT_COOKIE);
  if (value === null || !value.startsWith(RULE_PREFIX)) return null;
  try {
    return decodeURIComponent(value.slice(RULE_PREFIX.length));
  } catch {
    return null;
  }
}

/**
 * Returns a 307 to the same URL, with the positions in a cookie for as long as a router may answer from
 * before them.
 *
 * @param wrongRule the rule that named the wrong cell. Null if a name did.
 */
export function sendAgain(
  request: Request,
  positions: Positions,
  wrongRule: string | null,
  boundMs: number,
): Response {
  const maxAgeS = Math.max(1, Math.ceil(boundMs / 1_000));
  const headers = new Headers({ location: sameUrl(request.url), "cache-control": "no-store" });
  if (positions.size > 0) headers.append("set-cookie", positionCookie(positions, maxAgeS));
  const attributes = `Max-Age=${maxAgeS}; Path=/; HttpOnly; Secure; SameSite=Lax`;
  const value = wrongRule === null ? "name" : `${RULE_PREFIX}${encodeURIComponent(wrongRule)}`;
  headers.append("set-cookie", `${REDIRECT_COOKIE}=${value}; ${attributes}`);
  return new Response(null, { status: 307, headers });
}

/**
 * The URL without its origin, because a router behind another proxy does not know the origin that the client
 * used. A path that begins with two slashes would otherwise name another host.
 */
function sameUrl(url: string): string {
  const { pathname, search } = new URL(url);
  return `${pathname.startsWith("//") ? "/." : ""}${pathname}${search}`;
}
