/** The headers of forwarded requests and answers. */
import { POSITION_COOKIE } from "../positions.ts";

/** Marks a client that was asked to send its request again, so that it is asked only once. */
export const REDIRECT_COOKIE = "Leasehold-Redirected";

const ROUTER_COOKIES: ReadonlySet<string> = new Set([POSITION_COOKIE, REDIRECT_COOKIE]);

/**
 * Returns a `Cookie` header without the cookies of the router, which mean nothing to a cell. Null if no
 * cookie is left.
 */
function withoutRouterCookies(header: string | null): string | null {
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

/** Tells a router from a cell, and from other proxies that use the `CDN-Loop` header (RFC 8586). */
const TOKEN = "leasehold-router";

/** How many routers may have passed a request on before: one router may stand in front of another. */
const MAX_ROUTERS_BEFORE = 1;

/** Returns whether more routers have passed a request on than may stand behind each other. */
export function isLooping({ headers }: Request): boolean {
  const before = headers.get("cdn-loop");
  if (before === null) return false;
  const routers = before.split(",").filter((entry) => entry.split(";")[0]?.trim().toLowerCase() === TOKEN);
  return routers.length > MAX_ROUTERS_BEFORE;
}

/** Marks a request as passed on by a router, after the marks of other proxies. */
const markRouter = (headers: Headers): void => headers.append("cdn-loop", TOKEN);

/** They belong to one connection (RFC 9110, 7.6.1), so a proxy does not pass them on. */
const CONNECTION_HEADERS: ReadonlySet<string> = new Set([
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authentication-info",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

/** `fetch` sets the first two for its own connection, and does not support `Expect`. */
const FETCH_HEADERS: ReadonlySet<string> = new Set(["host", "content-length", "expect"]);

/** A cell believes these headers, so only the router may set them. */
const ROUTER_PREFIXES = ["leasehold-", "x-forwarded-", "x-gitlab-http-router-"];
const ROUTER_HEADERS: ReadonlySet<string> = new Set([
  "forwarded",
  "x-real-ip",
  "x-client-ip",
  "client-ip",
  "true-client-ip",
]);

const { navigator } = globalThis as { navigator?: { userAgent?: string } };
const isWorkerd = navigator?.userAgent === "Cloudflare-Workers";
/** workerd passes an encoded body on as it is. Other runtimes decode it, and don't change the headers. */
const keepsEncoding = isWorkerd;
/**
 * workerd never sends these, whatever an answer has. An answer that needs no other change is passed on as it
 * is, which is faster than a copy.
 */
const UNSENT_HEADERS: ReadonlySet<string> = new Set(isWorkerd ? ["connection", "keep-alive"] : []);

/** What a cell learns about the decision of the router. */
export interface RouteFacts {
  readonly cell: string;
  /** The epoch of the claim. Null if a rule names the cell. */
  readonly epoch: number | null;
  /** The age of the lookup's answer in milliseconds. Null if a rule names the cell. */
  readonly ageMs: number | null;
  /** The answer comes from an outage: it may be older than the usual bound. */
  readonly isStale: boolean;
  /** How many cells have refused the request before. */
  readonly hops: number;
  /** `proxy` for the default cell of a rule with the action `proxy`, `classify` for all others. */
  readonly ruleAction: "classify" | "proxy";
  /** The bucket type of the name that decided, or how the rule names the cell. Not sent for `proxy`. */
  readonly ruleType: string | null;
}

export interface RequestTrace {
  readonly traceparent: string;
  /** False if it is the client's own. */
  readonly isNew: boolean;
}

export interface Forwarding {
  /** The URL of the client's request. */
  readonly url: URL;
  readonly clientAddress: string | undefined;
  readonly trustForwarded: boolean;
  /** The request's trace. Undefined: its headers stay as they are. */
  readonly trace?: RequestTrace | undefined;
}

/** Returns the headers for the cell. */
export function requestHeaders(request: Request, facts: RouteFacts, forwarding: Forwarding): Headers {
  // Each call of `Headers` costs time in workerd, so the names are read once, and few headers are touched.
  const headers = new Headers(request.headers);
  const names = Array.from(headers.keys());
  const isUpgrade = names.includes("upgrade") && isWebSocket(request);
  const forwarded = forwardedHeaders(request, names, forwarding);
  const isConnectionHeader = connectionHeaders(headers, names);
  for (const name of names) {
    if (isConnectionHeader(name) || FETCH_HEADERS.has(name) || isOfRouter(name)) headers.delete(name);
    // `fetch` then asks only for what it decodes. The client must not get another encoding without
    // its header.
    else if (name === "accept-encoding" && !keepsEncoding) headers.delete(name);
    else if (name === "cookie") removeRouterCookies(headers);
  }
  if (isUpgrade) headers.set("upgrade", "websocket");
  for (const [name, value] of forwarded) headers.set(name, value);
  if (forwarding.trace?.isNew === true) {
    headers.set("traceparent", forwarding.trace.traceparent);
    // It belongs to the trace that the client has sent, which is not valid.
    headers.delete("tracestate");
  }
  for (const [name, value] of factHeaders(facts)) headers.set(name, value);
  markRouter(headers);
  headers.set("x-gitlab-http-router-rule-action", facts.ruleAction);
  if (facts.ruleAction === "classify" && facts.ruleType !== null)
    headers.set("x-gitlab-http-router-rule-type", facts.ruleType);
  return headers;
}

/** Returns the headers for the client: those that were given if they can stay as they are. */
export function answerHeaders(given: Headers, facts: RouteFacts | null): Headers {
  const names = Array.from(given.keys());
  const isConnectionHeader = connectionHeaders(given, names);
  const isDecoded = !keepsEncoding && names.includes("content-encoding");
  const isRemoved = (name: string): boolean =>
    (isConnectionHeader(name) && !UNSENT_HEADERS.has(name)) ||
    name.startsWith("leasehold-") ||
    (isDecoded && (name === "content-encoding" || name === "content-length"));
  const removed = names.filter(isRemoved);
  if (removed.length === 0 && facts === null) return given;
  const headers = new Headers(given);
  for (const name of removed) headers.delete(name);
  if (facts !== null) for (const [name, value] of factHeaders(facts)) headers.set(name, value);
  return headers;
}

/** Returns whether the client wants a WebSocket. */
const isWebSocket = (request: Request): boolean =>
  request.headers.get("upgrade")?.toLowerCase() === "websocket";

function factHeaders({ cell, epoch, ageMs, isStale, hops }: RouteFacts): [name: string, value: string][] {
  const headers: [string, string][] = [
    ["leasehold-cell", cell],
    ["leasehold-hops", String(hops)],
  ];
  if (epoch !== null) headers.push(["leasehold-epoch", String(epoch)]);
  if (ageMs !== null) headers.push(["leasehold-age-ms", String(Math.round(ageMs))]);
  if (isStale) headers.push(["leasehold-stale", "true"]);
  return headers;
}

function forwardedHeaders(
  { headers }: Request,
  names: readonly string[],
  { url, clientAddress, trustForwarded }: Forwarding,
): [name: string, value: string][] {
  const given = (name: string): string | null =>
    trustForwarded && names.includes(name) ? headers.get(name) : null;
  const forwarded: [string, string][] = [
    ["x-forwarded-host", given("x-forwarded-host") ?? url.host],
    ["x-forwarded-proto", given("x-forwarded-proto") ?? url.protocol.slice(0, -1)],
  ];
  const addresses = [given("x-forwarded-for"), clientAddress].filter((address) => address);
  if (addresses.length > 0) forwarded.push(["x-forwarded-for", addresses.join(", ")]);
  return forwarded;
}

function removeRouterCookies(headers: Headers): void {
  const given = headers.get("cookie");
  const cookies = withoutRouterCookies(given);
  if (cookies === given) return;
  if (cookies === null) headers.delete("cookie");
  else headers.set("cookie", cookies);
}

/** Returns a test for the headers of one connection: the usual ones, and those that `Connection` lists. */
function connectionHeaders(headers: Headers, names: readonly string[]): (name: string) => boolean {
  const text = names.includes("connection") ? (headers.get("connection") ?? "") : "";
  const listed = text === "" ? [] : text.split(",").map((name) => name.trim().toLowerCase());
  return (name) => CONNECTION_HEADERS.has(name) || listed.includes(name);
}

function isOfRouter(name: string): boolean {
  // CGI, WSGI and Rack give an application `X_Forwarded_For` and `X-Forwarded-For` by the same name.
  const hyphenated = name.replaceAll("_", "-");
  return ROUTER_HEADERS.has(hyphenated) || ROUTER_PREFIXES.some((prefix) => hyphenated.startsWith(prefix));
}
