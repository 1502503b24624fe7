/** Why the proxy answers a request itself. */
export type FailureKind =
  /** The rules find no cell: no name exists, or no rule matches. 404. */
  | "no_cell"
  /** The method cannot be forwarded (`CONNECT`, `TRACE`). 405. */
  | "method"
  /** The request has no valid URL, for example because its `Host` header is none. 400. */
  | "url"
  /** A `GET` or `HEAD` has a body, which `fetch` cannot send. 400. */
  | "body"
  /** The rules are wrong, for example because they name a type that is not declared. 500. */
  | "misconfigured"
  /** The connection to the cell failed. 502. */
  | "unreachable"
  /** The cell's address is not a bare `https` origin. 502. */
  | "unusable_address"
  /** Routers send the request in a circle, because a cell has the address of a router. 508. */
  | "loop"
  /** Whether a name exists is not known now. 503. */
  | "unavailable"
  /** Cells answered 421, and no other cell is known to have the name. 503. */
  | "misdirected"
  /** The cell sent no answer in time. 504. */
  | "timeout"
  /** The router failed. 500. */
  | "internal"
  /** The client went away, so nobody reads the answer. 499. */
  | "client_gone";

export interface ProxyFailure {
  readonly kind: FailureKind;
  readonly status: number;
  /**
   * What happened, for logs: it may say how the deployment works inside. It has no address and no key.
   * Clients get it only with a status below 500.
   */
  readonly detail: string;
  /** The id of the rule that decided, if one did. */
  readonly rule: string | null;
  /** The id of the cell, if one was chosen. */
  readonly cell: string | null;
  /** When the client should try again. Null if that would not help. */
  readonly retryAfterMs: number | null;
  /** The error behind it, for logs. Its text may have an address in it. */
  readonly error?: unknown;
}

const problems: Readonly<Record<FailureKind, { status: number; title: string }>> = {
  no_cell: { status: 404, title: "No cell has this" },
  method: { status: 405, title: "Method not allowed" },
  url: { status: 400, title: "Invalid URL" },
  body: { status: 400, title: "Unexpected body" },
  misconfigured: { status: 500, title: "The routing rules are wrong" },
  unreachable: { status: 502, title: "The cell does not answer" },
  unusable_address: { status: 502, title: "The cell has no usable address" },
  loop: { status: 508, title: "The request goes around in a circle" },
  unavailable: { status: 503, title: "The cell cannot be looked up now" },
  misdirected: { status: 503, title: "The cell is not known yet" },
  timeout: { status: 504, title: "The cell did not answer in time" },
  internal: { status: 500, title: "The router failed" },
  client_gone: { status: 499, title: "The client closed the request" },
};

/** The usual methods, because a 405 must list some. Every other one that is not refused is forwarded, too. */
const ALLOWED_METHODS = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";

/** Makes a failure with the status of its kind. */
export function failureOf(
  kind: FailureKind,
  detail: string,
  about: Partial<Pick<ProxyFailure, "rule" | "cell" | "retryAfterMs" | "error">> = {},
): ProxyFailure {
  const { status } = problems[kind];
  return { kind, status, detail, rule: null, cell: null, retryAfterMs: null, ...about };
}

/** The answer for a failure, as `application/problem+json`. The cause of a 500 and above is only for logs. */
export function problemResponse({ kind, status, detail, retryAfterMs }: ProxyFailure): Response {
  const headers = new Headers({ "content-type": "application/problem+json", "cache-control": "no-store" });
  if (retryAfterMs !== null) headers.set("retry-after", String(Math.max(1, Math.ceil(retryAfterMs / 1_000))));
  if (kind === "method") headers.set("allow", ALLOWED_METHODS);
  const body = {
    type: "about:blank",
    title: problems[kind].title,
    status,
    ...(status < 500 ? { detail } : {}),
    reason: kind.toUpperCase(),
  };
  return new Response(JSON.stringify(body), { status, headers });
}
