const ALWAYS = Object.entries({
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  "referrer-policy": "no-referrer",
  "cross-origin-resource-policy": "same-origin",
  "strict-transport-security": "max-age=31536000",
});

/**
 * The defaults for routes that don't set these headers: nothing is cached, and nothing in the answer may load
 * or run.
 */
const UNLESS_SET = Object.entries({
  "cache-control": "no-store",
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
});

/**
 * Sets the security headers of an answer. It must be an answer of this Worker, because headers of fetched
 * answers are immutable.
 */
export function secure(headers: Headers, requestId: string): void {
  headers.set("x-request-id", requestId);
  for (const [name, value] of ALWAYS) headers.set(name, value);
  for (const [name, value] of UNLESS_SET) if (!headers.has(name)) headers.set(name, value);
}
