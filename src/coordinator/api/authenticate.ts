import type { Principal } from "../auth/principal.ts";
import { isWebToken } from "../auth/tokens/is-web-token.ts";
import { bearerOf, keyMissing } from "../auth/verifier.ts";
import { ok, type Result } from "../kernel/refusal.ts";
import type { WaitUntil } from "../runtime.ts";
import { accessRefusal } from "./access-refusal.ts";
import { ambientRefusal, crossSiteRefusal } from "./ambient-refusal.ts";
import { bridgedCertificateOf } from "./certificate.ts";
import type { Deployment } from "../isolate/deployment.ts";
import type { Incoming } from "./incoming.ts";
import type { PageTokens } from "./page-token.ts";

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
