/**
 * JSON web tokens inside workerd, with its cryptography and its streams. test/coordinator/auth/tokens has the
 * rules.
 */
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { expect, onTestFinished, test, vi } from "vitest";
import { algorithms } from "../../../src/coordinator/auth/tokens/forms.ts";
import { TokenVerifier } from "../../../src/coordinator/auth/tokens/token-verifier.ts";
import {
  noIdentities,
  type Identities,
  type Issuer,
  type PublicJwk,
} from "../../../src/coordinator/capabilities/identities/identities.ts";
import { defaultLimits } from "../../../src/common/limits.ts";
import { wallClock } from "../../../src/coordinator/runtime.ts";

const ISS = "https://issuer.example";
const AUDIENCE = "https://leasehold.example";
const URL_OF_KEYS = `${ISS}/jwks`;

const identitiesOf = (issuer: Pick<Issuer, "algorithms" | "jwksUrl" | "keys">): Identities => ({
  ...noIdentities,
  issuers: [
    {
      name: "test",
      issuer: ISS,
      audience: AUDIENCE,
      rules: [{ claims: { repository: ["acme/app"] }, role: "cell", cell: "7" }],
      ...issuer,
    },
  ],
});

/** Makes a key pair, and signs a token with it. */
async function newToken(alg: string) {
  const { publicKey, privateKey } = await generateKeyPair(alg, { extractable: true });
  const jwk = (await exportJWK(publicKey)) as unknown as PublicJwk;
  const nowS = Math.floor(Date.now() / 1_000);
  const token = await new SignJWT({ repository: "acme/app", exp: nowS + 600, iat: nowS })
    .setProtectedHeader({ alg, kid: "key" })
    .setIssuer(ISS)
    .setAudience(AUDIENCE)
    .setSubject("repo:acme/app")
    .sign(privateKey);
  return { token, jwk: { ...jwk, kid: "key" } };
}

const accepted = { ok: true, value: { role: "cell", cell: "7" } };
const newVerifier = (): TokenVerifier => new TokenVerifier(defaultLimits, wallClock, () => {});

test.each(algorithms)("[A4] a token signed with %s is verified with the document's keys", async (alg) => {
  const { token, jwk } = await newToken(alg);
  const identities = identitiesOf({ algorithms: [alg], jwksUrl: null, keys: [jwk] });
  expect(await newVerifier().verify(token, identities, Date.now())).toMatchObject(accepted);
  const forged = `${token.slice(0, -8)}AAAAAAAA`;
  expect(await newVerifier().verify(forged, identities, Date.now())).toMatchObject({
    refusal: { code: "UNAUTHENTICATED", detail: "the token has a wrong signature" },
  });
});

test("[A4] keys are read once for requests at the same time, and never from elsewhere", async () => {
  const { token, jwk } = await newToken("ES256");
  const identities = identitiesOf({ algorithms: ["ES256"], jwksUrl: URL_OF_KEYS, keys: null });
  const urls: string[] = [];
  let answer = (): Response => Response.json({ keys: [{ kty: "oct" }, jwk] });
  const spy = vi.spyOn(globalThis, "fetch").mockImplementation((input) => {
    urls.push(input instanceof Request ? input.url : input.toString());
    return Promise.resolve(answer());
  });
  onTestFinished(() => spy.mockRestore());
  const verifier = newVerifier();
  const verifyAt = (nowMs: number) => verifier.verify(token, identities, nowMs);
  const nowMs = Date.now();
  expect(await Promise.all([verifyAt(nowMs), verifyAt(nowMs), verifyAt(nowMs)])).toMatchObject([
    accepted,
    accepted,
    accepted,
  ]);
  expect(urls).toEqual([URL_OF_KEYS]);
  const unusable = [
    () => new Response("no", { status: 503 }),
    () => Response.redirect("https://evil.example/jwks", 302),
    () => new Response("x".repeat(70_000)),
  ];
  for (const next of unusable) {
    answer = next;
    expect(await newVerifier().verify(token, identities, nowMs)).toMatchObject({
      refusal: { code: "UNAVAILABLE" },
    });
  }
  expect(new Set(urls)).toEqual(new Set([URL_OF_KEYS]));
});

test("a read that takes too long is given up", async () => {
  const { token } = await newToken("ES256");
  const identities = identitiesOf({ algorithms: ["ES256"], jwksUrl: URL_OF_KEYS, keys: null });
  // A body that never ends, so that the signal has to end it.
  const spy = vi.spyOn(globalThis, "fetch").mockImplementation((_, init) => {
    const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
    init?.signal?.addEventListener("abort", () => void writable.abort(new Error("aborted")));
    return Promise.resolve(new Response(readable));
  });
  onTestFinished(() => spy.mockRestore());
  const clock = {
    after: (_: number, then: () => void) => {
      const timer = setTimeout(then, 1);
      return () => clearTimeout(timer);
    },
  };
  const errors: unknown[] = [];
  const verifier = new TokenVerifier(defaultLimits, clock, (_, { error }) => void errors.push(error));
  expect(await verifier.verify(token, identities, Date.now())).toMatchObject({
    refusal: { code: "UNAVAILABLE" },
  });
  expect(errors).toEqual(["no complete answer within 3 s"]);
});
