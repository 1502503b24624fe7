import { refused } from "../core/refusal.ts";
import { isJsonBody, notJson } from "./body.ts";
import type { Failure } from "./problem.ts";

/**
 * Checks a request whose token was added on its way, because its browser has a session with a proxy. Every
 * site can make a browser send such a request. Undefined: it comes from no browser, or from a page of this
 * host.
 */
export function ambientRefusal(request: Request): Failure | undefined {
  const refusal = crossSiteRefusal(request);
  if (refusal !== undefined) return refusal;
  // A form can't send JSON, and a script of another site must ask for it first, which the API never answers.
  // So this also holds for browsers that don't say which site has made them send a request.
  const isRead = request.method === "GET" || request.method === "HEAD";
  return isRead || isJsonBody(request) ? undefined : notJson().refusal;
}

/** Refuses what a browser adds by itself, such as its client certificate, to a request for another site. */
export const crossSiteRefusal = (request: Request): Failure | undefined =>
  isCrossSite(request) ? CROSS_SITE : undefined;

/**
 * Whether a browser sends the request for another site. Browsers say so themselves, and no page can change
 * what they say. The scheme of the origin is not compared: behind a proxy that ends TLS, it differs.
 */
function isCrossSite(request: Request): boolean {
  const site = request.headers.get("sec-fetch-site");
  // `none` is an address that the user has typed.
  if (site !== null && site !== "same-origin" && site !== "none") return true;
  const origin = request.headers.get("origin");
  return origin !== null && (!URL.canParse(origin) || new URL(origin).host !== hostOf(request));
}

/** The host and port that the client has asked for. */
export const hostOf = ({ headers, url }: Request): string => headers.get("host") ?? new URL(url).host;

const CROSS_SITE = refused(
  "PERMISSION_DENIED",
  "a page of another site may not use what its browser adds; send `Authorization: Bearer <token>`",
).refusal;
