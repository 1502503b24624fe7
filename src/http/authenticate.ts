import type { Principal } from "../auth/principal.ts";
import { isWebToken } from "../auth/tokens/is-web-token.ts";
import { bearerOf, keyMissing } from "../auth/verifier.ts";
import { ok, type Result } from "../core/refusal.ts";
import type { WaitUntil } from "../runtime.ts";
import { accessRefusal } from "./access-refusal.ts";
import { bridgedCertificateOf, certificateOf } from "./certificate.ts";
import type { Deployment } from "./deployment.ts";
import type { PageTokens } from "./page-token.ts";
import { vouchedPrincipal } from "./vouched.ts";

export interface Authenticated {
  principal: Principal;
  tokens: PageTokens;
}

/**
 * Finds out who calls: by a key or token in `Authorization`, or without that header by the client certificate
 * that TLS has verified. A bridge has a key of its own, and passes on the certificate that it has verified.
 * Whether the key or identity was revoked is not checked here.
 */
export async function authenticate(
  deployment: Deployment,
  request: Request,
  waitUntil: WaitUntil,
): Promise<Result<Authenticated>> {
  const signed = deployment.signed();
  if (!signed.ok) return signed;
  const { keys, tokens } = signed.value;
  const vouched = vouchedPrincipal(request);
  if (vouched !== undefined) return ok({ principal: vouched, tokens });
  const authorization = request.headers.get("authorization") ?? undefined;
  const bearer = bearerOf(authorization);
  const principal =
    bearer === undefined
      ? await holderOf(deployment, request, authorization, waitUntil)
      : isWebToken(bearer)
        ? await bearerOfToken(deployment, bearer, waitUntil)
        : await keys.verify(bearer, deployment.clock.now());
  if (!principal.ok) return principal;
  const { role } = principal.value;
  const caller =
    role === "bridge" ? await behindBridge(deployment, request, principal.value, waitUntil) : principal;
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

/** The holder of the client certificate, if the request has nothing else. */
async function holderOf(
  deployment: Deployment,
  request: Request,
  authorization: string | undefined,
  waitUntil: WaitUntil,
): Promise<Result<Principal>> {
  if (authorization !== undefined) return keyMissing;
  const certificate = certificateOf(request);
  if (!certificate.ok) return certificate;
  return certificate.value === undefined ? keyMissing : holderOfDer(deployment, certificate.value, waitUntil);
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
  request: Request,
  bridge: Principal,
  waitUntil: WaitUntil,
): Promise<Result<Principal>> {
  const certificate = bridgedCertificateOf(request.headers);
  if (!certificate.ok) return certificate;
  if (certificate.value === undefined) return ok(bridge);
  const refusal = await accessRefusal(deployment, bridge, undefined, false, waitUntil);
  return refusal === undefined
    ? holderOfDer(deployment, certificate.value, waitUntil)
    : { ok: false, refusal };
}
