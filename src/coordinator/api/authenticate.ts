import type { Principal } from "../auth/principal.ts";
import { isWebToken } from "../auth/tokens/forms.ts";
import { bearerOf, keyMissing } from "../auth/verifier.ts";
import { ok, refused, type Result } from "../kernel/refusal.ts";
import type { WaitUntil } from "../runtime.ts";
import { accessRefusal } from "./access-refusal.ts";
import type { Deployment } from "../isolate/deployment.ts";
import type { Incoming } from "./incoming.ts";
import type { PageTokens } from "./page-token.ts";
import { isJsonBody, notJson } from "./body.ts";
import type { Failure } from "./problem.ts";

/** In which Cloudflare Access sends its tokens. */
const ACCESS_HEADER = "cf-access-jwt-assertion";

export interface Authenticated {
  principal: Principal;
  tokens: PageTokens;
}

/**
 * Finds out who calls: by a key or token in `Authorization`; without that header by a token in the header of
 * a proxy, if the request is one of the JSON API; and else by the client certificate that TLS has verified. A
 * bridge has a key of its own, and passes on the certificate that it has verified.
 * Whether the key or identity was revoked is not checked here.
 */
export async function authenticate(
  deployment: Deployment,
  incoming: Incoming,
  waitUntil: WaitUntil,
  api: "json" | "wire",
): Promise<Result<Authenticated>> {
  const signed = deployment.signed();
  if (!signed.ok) return signed;
  const { keys, tokens } = signed.value;
  if (incoming.principal !== undefined) return ok({ principal: incoming.principal, tokens });
  const bearer = bearerOf(incoming.header("authorization"));
  const principal =
    bearer === undefined
      ? await withoutBearer(deployment, incoming, waitUntil, api)
      : isWebToken(bearer)
        ? await bearerOfToken(deployment, bearer, waitUntil)
        : await keys.verify(bearer, deployment.clock.now());
  if (!principal.ok) return principal;
  const { role } = principal.value;
  const caller =
    role === "bridge" ? await behindBridge(deployment, incoming, principal.value, waitUntil) : principal;
  return caller.ok ? ok({ principal: caller.value, tokens }) : caller;
}

async function bearerOfToken(
  deployment: Deployment,
  token: string,
  waitUntil: WaitUntil,
): Promise<Result<Principal>> {
  const view = await deployment.directory.view(waitUntil);
  if (!view.ok) return view;
  const verifier = await deployment.verifiers.tokens();
  return verifier.verify(token, view.value.identities, deployment.clock.now());
}

/** The caller of a request without a key or token in `Authorization`. */
async function withoutBearer(
  deployment: Deployment,
  incoming: Incoming,
  waitUntil: WaitUntil,
  api: "json" | "wire",
): Promise<Result<Principal>> {
  if (incoming.header("authorization") !== undefined) return keyMissing;
  const added = api === "json" ? await addedToken(deployment, incoming, waitUntil) : undefined;
  return added ?? holderOf(deployment, incoming, waitUntil, api);
}

/** Recognizes the token that a proxy has added. Undefined: there is none, or no issuer names the header. */
async function addedToken(
  deployment: Deployment,
  incoming: Incoming,
  waitUntil: WaitUntil,
): Promise<Result<Principal> | undefined> {
  const token = incoming.header(ACCESS_HEADER);
  if (token === undefined) return undefined;
  const view = await deployment.directory.view(waitUntil);
  if (!view.ok) return view;
  const { identities } = view.value;
  if (!identities.issuers.some(({ tokenHeader }) => tokenHeader === ACCESS_HEADER)) return undefined;
  const refusal = ambientRefusal(incoming);
  if (refusal !== undefined) return { ok: false, refusal };
  const verifier = await deployment.verifiers.tokens();
  return verifier.verify(token, identities, deployment.clock.now(), ACCESS_HEADER);
}

/** The holder of the client certificate, if the request has nothing else. */
async function holderOf(
  deployment: Deployment,
  incoming: Incoming,
  waitUntil: WaitUntil,
  api: "json" | "wire",
): Promise<Result<Principal>> {
  const certificate = incoming.certificate();
  if (!certificate.ok) return certificate;
  if (certificate.value === undefined) return keyMissing;
  // Changes over the wire need media types for which a browser asks first, and nothing answers that. Its
  // calls may come through proxies that pass on the origin of a page, so they are not checked.
  const refusal = api === "json" ? crossSiteRefusal(incoming) : undefined;
  if (refusal !== undefined) return { ok: false, refusal };
  return holderOfDer(deployment, certificate.value, waitUntil);
}

async function holderOfDer(
  deployment: Deployment,
  der: Uint8Array,
  waitUntil: WaitUntil,
): Promise<Result<Principal>> {
  const view = await deployment.directory.view(waitUntil);
  if (!view.ok) return view;
  const verifier = await deployment.verifiers.certificates();
  return verifier.verify(der, view.value.identities, deployment.clock.now());
}

/** A bridge may do nothing itself, so one that passes on no certificate is refused by every route. */
async function behindBridge(
  deployment: Deployment,
  incoming: Incoming,
  bridge: Principal,
  waitUntil: WaitUntil,
): Promise<Result<Principal>> {
  const certificate = bridgedCertificateOf(incoming.header("client-cert"));
  if (!certificate.ok) return certificate;
  if (certificate.value === undefined) return ok(bridge);
  const refusal = await accessRefusal(deployment, bridge, undefined, false, waitUntil);
  return refusal === undefined
    ? holderOfDer(deployment, certificate.value, waitUntil)
    : { ok: false, refusal };
}

/**
 * Checks a request whose token was added on its way, because its browser has a session with a proxy. Every
 * site can make a browser send such a request. Undefined: it comes from no browser, or from a page of this
 * host.
 */
function ambientRefusal(incoming: Incoming): Failure | undefined {
  const refusal = crossSiteRefusal(incoming);
  if (refusal !== undefined) return refusal;
  // A form can't send JSON, and a script of another site must ask for it first, which the API never answers.
  // So this also holds for browsers that don't say which site has made them send a request.
  const isRead = incoming.method === "GET" || incoming.method === "HEAD";
  return isRead || isJsonBody(incoming) ? undefined : notJson().refusal;
}

/** Refuses what a browser adds by itself, such as its client certificate, to a request for another site. */
const crossSiteRefusal = (incoming: Incoming): Failure | undefined =>
  isCrossSite(incoming) ? CROSS_SITE : undefined;

/**
 * Whether a browser sends the request for another site. Browsers say so themselves, and no page can change
 * what they say. The scheme of the origin is not compared: behind a proxy that ends TLS, it differs.
 */
function isCrossSite(incoming: Incoming): boolean {
  const site = incoming.header("sec-fetch-site");
  // `none` is an address that the user has typed.
  if (site !== undefined && site !== "same-origin" && site !== "none") return true;
  const origin = incoming.header("origin");
  return origin !== undefined && (!URL.canParse(origin) || new URL(origin).host !== hostOf(incoming));
}

/** The host and port that the client has asked for. */
export const hostOf = (incoming: Incoming): string => incoming.header("host") || "localhost";

const CROSS_SITE = refused(
  "PERMISSION_DENIED",
  "a page of another site may not use what its browser adds; send `Authorization: Bearer <token>`",
).refusal;

/** What Cloudflare says about the client's certificate (`request.cf`). */
export interface TlsClientAuth {
  certPresented?: string;
  /** `SUCCESS`, `NONE`, or `FAILED:` with the reason. */
  certVerified?: string;
  certRevoked?: string;
  certRFC9440?: string;
  certRFC9440TooLarge?: boolean;
}

/** Returns the client's certificate in DER. Undefined: there is none, or Cloudflare has not verified it. */
export function certificateOf(tlsClientAuth: TlsClientAuth | undefined): Result<Uint8Array | undefined> {
  if (tlsClientAuth === undefined) return ok(undefined);
  const { certPresented, certVerified, certRevoked, certRFC9440 = "", certRFC9440TooLarge } = tlsClientAuth;
  if (certPresented !== "1" || certVerified !== "SUCCESS" || certRevoked === "1") return ok(undefined);
  if (certRFC9440TooLarge === true)
    return refused(
      "UNAUTHENTICATED",
      "the client certificate is larger than the 10 KiB that Cloudflare passes on; use one with fewer names",
    );
  const der = decoded(certRFC9440);
  return der === undefined
    ? refused("UNAUTHENTICATED", "Cloudflare passed on no client certificate that can be read")
    : ok(der);
}

/**
 * Returns the certificate in `Client-Cert` (RFC 9440), which is that of a client of a bridge. Only the bearer
 * of a bridge key may be believed. Undefined: the client had none.
 */
export function bridgedCertificateOf(text: string | undefined): Result<Uint8Array | undefined> {
  if (text === undefined) return ok(undefined);
  const der = decoded(text);
  return der === undefined
    ? refused(
        "UNAUTHENTICATED",
        "the header Client-Cert must be one certificate of at most 16 KiB as :base64:",
      )
    : ok(der);
}

/** As the bytes are bounded before they are read. */
const MAX_BASE64_LENGTH = 4 * Math.ceil(16_384 / 3);
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;

/** Decodes a byte sequence of structured fields (RFC 8941). */
function decoded(text: string): Uint8Array | undefined {
  if (!text.startsWith(":") || !text.endsWith(":")) return undefined;
  const base64 = text.slice(1, -1);
  if (base64.length > MAX_BASE64_LENGTH || base64.length % 4 !== 0 || !BASE64.test(base64)) return undefined;
  return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
}
