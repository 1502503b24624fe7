import { hostOf } from "../http/ambient-refusal.ts";

/**
 * Whether a form comes from a page of this console. A browser says so itself, and a form of another site
 * cannot change what it says. The scheme is not compared: behind a proxy that ends TLS, it differs.
 */
export function isOwnOrigin(request: Request): boolean {
  const site = request.headers.get("sec-fetch-site");
  if (site !== null && site !== "same-origin") return false;
  const origin = request.headers.get("origin");
  if (origin === null || origin === "null") return site === "same-origin";
  return URL.canParse(origin) && new URL(origin).host === hostOf(request);
}

/**
 * Whether the page was opened without TLS over a network. The browser would not keep the session's cookie,
 * and the key has been sent in the clear.
 */
export function isPlain(request: Request): boolean {
  const origin = request.headers.get("origin");
  return origin !== null && origin.startsWith("http:") && !isLoopback(request);
}

/** Whether the browser runs on the same machine and uses no TLS. */
export const isLoopback = (request: Request): boolean =>
  new URL(request.url).protocol === "http:" && LOOPBACK.test(hostOf(request));

const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d+)?$/;
