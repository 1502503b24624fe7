import {
  isConsoleRole,
  principalOf,
  type ConsoleSession,
  type ConsoleSessions,
} from "../auth/console-sessions.ts";
import type { AccessUser } from "../auth/access-verifier.ts";
import { decodeUtf8 } from "../auth/base64url.ts";
import { errorCodes } from "../kernel/refusal.ts";
import { accessRefusal } from "../api/access-refusal.ts";
import { pathOf } from "../api/address.ts";
import { readInTime } from "../api/body.ts";
import { deploymentOf, type Deployment } from "../isolate/deployment.ts";
import { secured } from "../api/http-answer.ts";
import type { HttpAnswer, Incoming, RequestContext } from "../api/incoming.ts";
import { sentence } from "../api/problem.ts";
import type { Trace } from "../api/trace.ts";
import { InternalApi, type Serve } from "../api/internal-api.ts";
import {
  endedCookie,
  sessionCookie,
  sessionTextOf,
  isOwnOrigin,
  isPlain,
  signInPage,
  SignInLimit,
} from "./sign-in.ts";
import { documentOf, type Page, styleBytes, stylePath } from "./layout.ts";
import { html } from "./markup.ts";
import { pageAt } from "./pages.ts";
import type { Outcome } from "./view.ts";

/** The largest form, sign-in included. */
const MAX_FORM_BYTES = 16_384;

type Body = string | Uint8Array | null;

/**
 * Serves every path under `/console`.
 *
 * @param serve serves a request of the API inside the process
 */
export async function serveConsole(
  { incoming, env, trace }: RequestContext,
  serve: Serve,
): Promise<HttpAnswer> {
  trace.route = "console";
  const { method } = incoming;
  const path = pathOf(incoming.target);
  const send = (status: number, body: Body, headers: Record<string, string>): HttpAnswer => ({
    status,
    headers: ofConsole(headers, trace),
    body,
  });
  if (path === stylePath)
    return send(200, styleBytes, {
      "content-type": "text/css; charset=utf-8",
      "cache-control": "public, max-age=31536000, immutable",
    });
  if (method !== "GET" && method !== "HEAD" && method !== "POST")
    return send(405, "This path only supports GET, HEAD, POST.\n", {
      "content-type": "text/plain; charset=utf-8",
      allow: "GET, HEAD, POST",
    });
  const deployment = deploymentOf(env);
  const signed = deployment.signed();
  if (!signed.ok) return showPage({ ...noticePage("Not ready", signed.refusal.detail), status: 503 });
  const { sessions, keys } = signed.value;
  const nowMs = deployment.clock.now();
  let session: ConsoleSession | undefined;
  let formToken = "";

  const url = new URL(incoming.target, "https://console.invalid");
  function showPage(page: Page, headers: Record<string, string> = {}): HttpAnswer {
    const shell = { path, search: url.searchParams.get("q") ?? "", session, formToken };
    return send(page.status ?? 200, documentOf(page, shell), {
      "content-type": "text/html; charset=utf-8",
      ...headers,
    });
  }
  const redirect = (location: string, headers: Record<string, string> = {}): HttpAnswer =>
    send(303, null, { location, ...headers });

  let form: URLSearchParams | undefined;
  if (method === "POST") {
    if (!isOwnOrigin(incoming))
      return showPage({
        ...noticePage("Refused", "This form does not come from a page of this console. Nothing was done."),
        status: 403,
      });
    const read = await readForm(incoming, deployment);
    if (typeof read === "string") return showPage({ ...noticePage("Refused", read), status: 400 });
    form = read;
  }

  if (path === "/console/sign-in" && form !== undefined) {
    if (isPlain(incoming)) return showPage(signInPage(PLAIN, 400));
    const address = incoming.header("cf-connecting-ip") ?? null;
    const limit = limitOf(deployment);
    const waitS = limit.waitS(address, nowMs);
    if (waitS !== undefined)
      return showPage(signInPage(`Too many sign-ins have failed. Try again in ${waitS} s.`, 429), {
        "retry-after": String(waitS),
      });
    const principal = await keys.verify((form.get("key") ?? "").trim(), nowMs);
    if (!principal.ok) {
      limit.failed(address, nowMs);
      return showPage(signInPage(sentence(principal.refusal.detail), 401));
    }
    const { role } = principal.value;
    if (!isConsoleRole(role))
      return showPage(
        signInPage(`The console needs a key of an operator or a viewer; this is one of a ${role}.`, 403),
      );
    trace.principal = principal.value;
    const refusal = await accessRefusal(deployment, principal.value, undefined, true, () => {});
    if (refusal !== undefined)
      return showPage(signInPage(sentence(refusal.detail), refusal.code === "UNAUTHENTICATED" ? 401 : 503));
    const cookie = sessionCookie(incoming, await sessions.start(principal.value, role, nowMs));
    return redirect("/console", { "set-cookie": cookie });
  }

  const text = sessionTextOf(incoming);
  let found = text === undefined ? undefined : await sessions.read(text, nowMs);
  const assertion = incoming.header("cf-access-jwt-assertion");
  if (found === undefined && deployment.access !== undefined && assertion !== undefined) {
    const user = await deployment.access.verify(assertion, nowMs);
    if (!user.ok)
      return showPage(signInPage(sentence(user.refusal.detail), errorCodes[user.refusal.code].status));
    found = sessionOfUser(user.value);
  }
  if (found === undefined) {
    const why = text === undefined ? undefined : "Your session has ended. Sign in again.";
    const status = method === "POST" ? 401 : 200;
    return showPage(
      signInPage(why, status),
      text === undefined ? {} : { "set-cookie": endedCookie(incoming) },
    );
  }
  trace.principal = principalOf(found);
  const refusal = await accessRefusal(deployment, trace.principal, undefined, true, () => {});
  if (refusal?.code === "UNAUTHENTICATED")
    return showPage(signInPage(`${sentence(refusal.detail)} Your session has ended.`, 401), {
      "set-cookie": endedCookie(incoming),
    });
  session = found;
  formToken = await sessions.formToken(found);
  if (form !== undefined && !(await hasToken(sessions, found, form)))
    return showPage({
      ...noticePage("Refused", "The form is not of this session. Nothing was done. Open the page again."),
      status: 403,
    });
  if (path === "/console/sign-out")
    return redirect("/console", form === undefined ? {} : { "set-cookie": endedCookie(incoming) });
  if (path === "/console/sign-in") return redirect("/console");

  const outcome: Outcome = await pageAt(path, form !== undefined, {
    api: new InternalApi(serve, trace.principal, trace.requestId),
    session,
    input: form ?? url.searchParams,
    rest: [],
    url,
    formToken,
    canChange: session.role === "operator",
    nowMs,
  });
  return "location" in outcome ? redirect(outcome.location) : showPage(outcome);
}

const limits = new WeakMap<Deployment, SignInLimit>();

function limitOf(deployment: Deployment): SignInLimit {
  const limit = limits.get(deployment) ?? new SignInLimit();
  limits.set(deployment, limit);
  return limit;
}

const PLAIN =
  "This page was opened without TLS, so everybody between you and the deployment could read the key. " +
  "Revoke the key, and open the console over https.";

/** Access vouches for each request, so this session needs no cookie. */
const sessionOfUser = ({ id, email, role, issuedAtMs, expiresAtMs }: AccessUser): ConsoleSession => ({
  // Tokens of forms hold until Access issues another assertion.
  id: `access ${id} ${issuedAtMs}`,
  keyId: accessKeyId(id),
  role,
  keyExpiresAtMs: expiresAtMs,
  expiresAtMs,
  email,
});

/** What the audit has in place of the id of a key. Revoking it shuts the user out. */
const accessKeyId = (user: string): string => `access-${user}`;

const hasToken = (
  sessions: ConsoleSessions,
  session: ConsoleSession,
  form: URLSearchParams,
): Promise<boolean> => sessions.isFormToken(session, form.get("token") ?? "");

const noticePage = (title: string, text: string): Page => ({
  title,
  main: html`<p class="panel" role="alert">${text}</p>`,
});

/** Reads a form. A text says why it was refused. */
async function readForm(incoming: Incoming, deployment: Deployment): Promise<URLSearchParams | string> {
  const type = incoming.header("content-type") ?? "";
  if (!/^application\/x-www-form-urlencoded *(;|$)/i.test(type)) return "This is not a form.";
  const { bodyReadMs } = deployment.config.limits;
  const rules = { bodyBytes: MAX_FORM_BYTES, bodyReadMs };
  const bytes = await readInTime(incoming, rules, deployment.clock);
  if (!bytes.ok)
    return bytes.refusal.reason === "BODY_TOO_LARGE"
      ? `The form is larger than ${MAX_FORM_BYTES} bytes.`
      : sentence(bytes.refusal.detail);
  const text = decodeUtf8(bytes.value);
  return text === undefined ? "The form is not UTF-8." : new URLSearchParams(text);
}

/**
 * Only the style sheet may be loaded, and forms go only to this origin. With `no-referrer`, browsers would
 * send forms with the origin `null`.
 */
const ofConsole = (own: Record<string, string>, { requestId }: Trace): Record<string, string> => ({
  ...secured(
    {
      "content-security-policy":
        "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
      ...own,
    },
    requestId,
  ),
  "referrer-policy": "same-origin",
});
