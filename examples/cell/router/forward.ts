import type { Context } from "hono";

/** This is longer than any request to a cell takes. */
const TIMEOUT_MS = 15_000;

/** Headers that belong to one connection (RFC 9110, 7.6.1) or are set again for the next one. */
const CONNECTION_HEADERS = [
  "connection",
  "keep-alive",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
  "host",
  "content-length",
];

/**
 * Forwards the browser's request to `path` of a cell and returns the answer. Throws if the cell does not
 * answer.
 */
export async function forward(
  context: Context,
  address: string,
  path: string,
  lookup?: string,
): Promise<Response> {
  const { req } = context;
  const headers = withoutConnectionHeaders(req.raw.headers);
  // Only the router may set this header, so drop the browser's value.
  headers.delete("leasehold-lookup");
  if (lookup !== undefined) headers.set("leasehold-lookup", lookup);
  const hasBody = req.method !== "GET" && req.method !== "HEAD";
  const response = await fetch(new URL(path, address), {
    method: req.method,
    headers,
    redirect: "manual",
    signal: AbortSignal.timeout(TIMEOUT_MS),
    ...(hasBody ? { body: await req.arrayBuffer() } : {}),
  });
  const answer = await response.arrayBuffer();
  const isEmpty = response.status === 204 || response.status === 304;
  return new Response(isEmpty ? null : answer, {
    status: response.status,
    headers: withoutConnectionHeaders(response.headers),
  });
}

function withoutConnectionHeaders(given: Headers): Headers {
  const headers = new Headers(given);
  for (const name of CONNECTION_HEADERS) headers.delete(name);
  return headers;
}
