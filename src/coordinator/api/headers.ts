/**
 * The defaults for routes that don't set these headers: nothing is cached, and nothing in the answer may load
 * or run.
 */
const UNLESS_SET = {
  "cache-control": "no-store",
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
};

const ALWAYS = {
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  "referrer-policy": "no-referrer",
  "cross-origin-resource-policy": "same-origin",
  "strict-transport-security": "max-age=31536000",
};

/** Returns all headers of an answer, from those that are its own, in lower case. */
export const secured = (
  own: Readonly<Record<string, string>>,
  requestId: string,
): Record<string, string> => ({ ...UNLESS_SET, ...own, ...ALWAYS, "x-request-id": requestId });
