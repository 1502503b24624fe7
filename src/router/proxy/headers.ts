/** The headers of forwarded requests and answers. */
import { withoutRouterCookies } from "./cookies.ts";

/** They belong to one connection (RFC 9110, 7.6.1), so a proxy does not pass them on. */
const CONNECTION_HEADERS = [
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
];

/** A cell believes these headers, so only the router may set them. */
const ROUTER_PREFIXES = ["leasehold-", "x-forwarded-", "x-gitlab-http-router-"];
const ROUTER_HEADERS: ReadonlySet<string> = new Set([
  "forwarded",
  "x-real-ip",
  "x-client-ip",
  "client-ip",
  "true-client-ip",
]);

/** workerd passes an encoded body on as it is. Other runtimes decode it, and don't change the headers. */
const { navigator } = globalThis as { navigator?: { userAgent?: string } };
const keepsEncoding = navigator?.userAgent === "Cloudflare-Workers";

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

export interface Forwarding {
  readonly clientAddress: string | undefined;
  readonly trustForwarded: boolean;
}

/** Returns the headers for the cell. */
export function requestHeaders(request: Request, facts: RouteFacts, forwarding: Forwarding): Headers {
  const headers = new Headers(request.headers);
  const isUpgrade = isWebSocket(request);
  const forwarded = forwardedHeaders(request, forwarding);
  removeConnectionHeaders(headers);
  removeMatching(headers, isOfRouter);
  // `fetch` sets both for its own connection, and does not support `Expect`.
  for (const name of ["host", "content-length", "expect"]) headers.delete(name);
  // `fetch` then asks only for what it decodes. The client must not get another encoding without its header.
  if (!keepsEncoding) headers.delete("accept-encoding");
  const cookies = withoutRouterCookies(headers.get("cookie"));
  if (cookies === null) headers.delete("cookie");
  else headers.set("cookie", cookies);
  if (isUpgrade) headers.set("upgrade", "websocket");
  for (const [name, value] of Object.entries(forwarded)) headers.set(name, value);
  for (const [name, value] of Object.entries(factHeaders(facts))) headers.set(name, value);
  headers.set("x-gitlab-http-router-rule-action", facts.ruleAction);
  if (facts.ruleAction === "classify" && facts.ruleType !== null)
    headers.set("x-gitlab-http-router-rule-type", facts.ruleType);
  return headers;
}

/** Returns the headers for the client. */
export function answerHeaders(given: Headers, facts: RouteFacts | null): Headers {
  const headers = new Headers(given);
  removeConnectionHeaders(headers);
  removeMatching(headers, (name) => name.startsWith("leasehold-"));
  if (!keepsEncoding && headers.has("content-encoding"))
    for (const name of ["content-encoding", "content-length"]) headers.delete(name);
  if (facts !== null)
    for (const [name, value] of Object.entries(factHeaders(facts))) headers.set(name, value);
  return headers;
}

/** Returns whether the client wants a WebSocket. */
const isWebSocket = (request: Request): boolean =>
  request.headers.get("upgrade")?.toLowerCase() === "websocket";

function factHeaders({ cell, epoch, ageMs, isStale, hops }: RouteFacts): Record<string, string> {
  return {
    "leasehold-cell": cell,
    ...(epoch === null ? {} : { "leasehold-epoch": String(epoch) }),
    ...(ageMs === null ? {} : { "leasehold-age-ms": String(Math.round(ageMs)) }),
    ...(isStale ? { "leasehold-stale": "true" } : {}),
    "leasehold-hops": String(hops),
  };
}

function forwardedHeaders(
  { url, headers }: Request,
  { clientAddress, trustForwarded }: Forwarding,
): Record<string, string> {
  const { host, protocol } = new URL(url);
  const given = (name: string): string | null => (trustForwarded ? headers.get(name) : null);
  const addresses = [given("x-forwarded-for"), clientAddress].filter((address) => address);
  return {
    "x-forwarded-host": given("x-forwarded-host") ?? host,
    "x-forwarded-proto": given("x-forwarded-proto") ?? protocol.slice(0, -1),
    ...(addresses.length === 0 ? {} : { "x-forwarded-for": addresses.join(", ") }),
  };
}

function removeConnectionHeaders(headers: Headers): void {
  const listed = (headers.get("connection") ?? "").split(",").map((name) => name.trim().toLowerCase());
  for (const name of CONNECTION_HEADERS) headers.delete(name);
  // A name that is not a token cannot be a header, and `delete` would throw.
  for (const name of listed) if (/^[\w!#$%&'*+.^`|~-]+$/.test(name)) headers.delete(name);
}

function isOfRouter(name: string): boolean {
  // CGI, WSGI and Rack give an application `X_Forwarded_For` and `X-Forwarded-For` by the same name.
  const hyphenated = name.replaceAll("_", "-");
  return ROUTER_HEADERS.has(hyphenated) || ROUTER_PREFIXES.some((prefix) => hyphenated.startsWith(prefix));
}

function removeMatching(headers: Headers, matches: (name: string) => boolean): void {
  // Deleting during the iteration would skip names.
  const names = Array.from(headers.keys());
  for (const name of names) if (matches(name)) headers.delete(name);
}
