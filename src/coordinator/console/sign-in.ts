import { html } from "./markup.ts";
import type { Page } from "./layout.ts";
import { SESSION_S } from "../auth/console-sessions.ts";
import type { Incoming } from "../api/incoming.ts";
import { hostOf } from "../api/authenticate.ts";

/** The form takes the key by POST, so it is in no address and in no history. */
export const signInPage = (why: string | undefined, status = 200): Page => ({
  title: "Sign in",
  status,
  main: html`<div class="narrow">
    ${why === undefined ? undefined : html`<p class="panel bad" role="alert">${why}</p>`}
    <form class="stack panel" method="post" action="/console/sign-in">
      <label for="key"
        >Key of an operator or a viewer
        <small>It is used once, to start a session of 30 minutes. The browser does not keep it.</small
        ><input
          id="key"
          name="key"
          type="password"
          autocomplete="off"
          spellcheck="false"
          required
          maxlength="1024"
      /></label>
      <button class="primary">Sign in</button>
    </form>
    <p class="soft">
      If you are signed in and came here from another site, <a href="/console">go on to the console</a>.
    </p>
  </div>`,
});

const WINDOW_MS = 60_000;

/** Failed sign-ins from one address in one window. */
const MAX_FAILED = 10;
/** The addresses that are counted. Others are not limited in that window. */
const MAX_ADDRESSES = 1_000;

/**
 * Counts failed sign-ins of this isolate by address. A key can't be guessed, so this protects no key: it
 * limits the work and the log lines that a script can cause. No limit is for all addresses together, because
 * a script could then keep operators out.
 */
export class SignInLimit {
  #windowEndsAtMs = 0;
  readonly #failed = new Map<string, number>();

  /** Returns how long to wait, in seconds. Undefined: a sign-in may be tried. */
  waitS(address: string | null, nowMs: number): number | undefined {
    if (nowMs >= this.#windowEndsAtMs || this.#countOf(address) < MAX_FAILED) return undefined;
    return Math.ceil((this.#windowEndsAtMs - nowMs) / 1_000);
  }

  failed(address: string | null, nowMs: number): void {
    if (nowMs >= this.#windowEndsAtMs) {
      this.#windowEndsAtMs = nowMs + WINDOW_MS;
      this.#failed.clear();
    }
    if (address === null) return;
    if (this.#failed.has(address) || this.#failed.size < MAX_ADDRESSES)
      this.#failed.set(address, this.#countOf(address) + 1);
  }

  #countOf(address: string | null): number {
    return address === null ? 0 : (this.#failed.get(address) ?? 0);
  }
}

/**
 * With the prefix, no other host can set the cookie, and browsers keep it only over TLS. On the loopback
 * interface there is no TLS, and not every browser makes an exception for it.
 */
const nameFor = (incoming: Incoming): string =>
  isLoopback(incoming) ? "leasehold-console" : "__Host-leasehold-console";

const attributesFor = (incoming: Incoming): string =>
  `Path=/; HttpOnly; SameSite=Strict${isLoopback(incoming) ? "" : "; Secure"}`;

export function sessionTextOf(incoming: Incoming): string | undefined {
  const name = `${nameFor(incoming)}=`;
  const pairs = (incoming.header("cookie") ?? "").split(/; */);
  return pairs.find((pair) => pair.startsWith(name))?.slice(name.length);
}

export const sessionCookie = (incoming: Incoming, text: string): string =>
  `${nameFor(incoming)}=${text}; Max-Age=${SESSION_S}; ${attributesFor(incoming)}`;

export const endedCookie = (incoming: Incoming): string =>
  `${nameFor(incoming)}=; Max-Age=0; ${attributesFor(incoming)}`;

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
const isLoopback = (incoming: Incoming): boolean => !incoming.isTls && LOOPBACK.test(hostOf(incoming));

const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d+)?$/;
