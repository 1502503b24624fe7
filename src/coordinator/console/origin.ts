import { hostOf } from "../api/authenticate.ts";
import type { Incoming } from "../api/incoming.ts";

/**
 * Whether a form comes from a page of this console. A browser says so itself, and a form of another site
 * cannot change what it says. The scheme is not compared: behind a proxy that ends TLS, it differs.
 */
export function isOwnOrigin(incoming: Incoming): boolean {
  const site = incoming.header("sec-fetch-site");
  if (site !== undefined && site !== "same-origin") return false;
  const origin = incoming.header("origin");
  if (origin === undefined || origin === "null") return site === "same-origin";
  return URL.canParse(origin) && new URL(origin).host === hostOf(incoming);
}

/**
 * Whether the page was opened without TLS over a network. The browser would not keep the session's cookie,
 * and the key has been sent in the clear.
 */
export function isPlain(incoming: Incoming): boolean {
  const origin = incoming.header("origin");
  return origin !== undefined && origin.startsWith("http:") && !isLoopback(incoming);
}

/** Whether the browser runs on the same machine and uses no TLS. */
export const isLoopback = (incoming: Incoming): boolean => !incoming.isTls && LOOPBACK.test(hostOf(incoming));

const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d+)?$/;
