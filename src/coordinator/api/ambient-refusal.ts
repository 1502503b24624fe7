import { refused } from "../kernel/refusal.ts";
import { isJsonBody, notJson } from "./body.ts";
import type { Incoming } from "./incoming.ts";
import type { Failure } from "./problem.ts";

/**
 * Checks a request whose token was added on its way, because its browser has a session with a proxy. Every
 * site can make a browser send such a request. Undefined: it comes from no browser, or from a page of this
 * host.
 */
export function ambientRefusal(incoming: Incoming): Failure | undefined {
  const refusal = crossSiteRefusal(incoming);
  if (refusal !== undefined) return refusal;
  // A form can't send JSON, and a script of another site must ask for it first, which the API never answers.
  // So this also holds for browsers that don't say which site has made them send a request.
  const isRead = incoming.method === "GET" || incoming.method === "HEAD";
  return isRead || isJsonBody(incoming) ? undefined : notJson().refusal;
}

/** Refuses what a browser adds by itself, such as its client certificate, to a request for another site. */
export const crossSiteRefusal = (incoming: Incoming): Failure | undefined =>
  isCrossSite(incoming) ? CROSS_SITE : undefined;

/**
 * Whether a browser sends the request for another site. Browsers say so themselves, and no page can change
 * what they say. The scheme of the origin is not compared: behind a proxy that ends TLS, it differs.
 */
function isCrossSite(incoming: Incoming): boolean {
  const site = incoming.header("sec-fetch-site");
  // `none` is an address that the user has typed.
  if (site !== undefined && site !== "same-origin" && site !== "none") return true;
  const origin = incoming.header("origin");
  return origin !== undefined && (!URL.canParse(origin) || new URL(origin).host !== hostOf(incoming));
}

/** The host and port that the client has asked for. */
export const hostOf = (incoming: Incoming): string => incoming.header("host") || "localhost";

const CROSS_SITE = refused(
  "PERMISSION_DENIED",
  "a page of another site may not use what its browser adds; send `Authorization: Bearer <token>`",
).refusal;
