const ALWAYS = Object.entries({
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  "referrer-policy": "no-referrer",
  "cross-origin-resource-policy": "same-origin",
  "strict-transport-security": "max-age=31536000",
});

/** Unless the route has said otherwise: nothing may be kept, and nothing in it may run. */
const UNLESS_SET = Object.entries({
  "cache-control": "no-store",
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
});

/** Of an answer that was made here, whose headers may still be set. */
export function secure(headers: Headers, requestId: string): void {
  headers.set("x-request-id", requestId);
  for (const [name, value] of ALWAYS) headers.set(name, value);
  for (const [name, value] of UNLESS_SET) if (!headers.has(name)) headers.set(name, value);
}
