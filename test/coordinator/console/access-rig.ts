/** A stand-in for a team of Cloudflare Access: a real key pair, and the address that has its public key. */
import { SignJWT } from "jose";
import { onTestFinished, vi } from "vitest";

export const TEAM = "acme.cloudflareaccess.com";
export const AUDIENCE = "ab".repeat(32);

export interface Team {
  /** Signs an assertion, with these claims in place of the usual ones. */
  assert(claims?: Record<string, unknown>, header?: Record<string, unknown>): Promise<string>;
  /** Replaces the key pair, as Access does every six weeks. */
  rotate(): Promise<void>;
  /** What is answered instead of the keys. */
  answer: (() => Response) | undefined;
  /** How often the keys were read. */
  reads: number;
}

/** Ends with the test. */
export async function startTeam(): Promise<Team> {
  let generation = 0;
  let pair = await newPair();
  const team: Team = {
    answer: undefined,
    reads: 0,
    async assert(claims = {}, header = {}) {
      const nowS = Math.floor(Date.now() / 1_000);
      const payload = {
        aud: [AUDIENCE],
        email: "ada@example.com",
        exp: nowS + 3_600,
        iat: nowS,
        nbf: nowS,
        iss: `https://${TEAM}`,
        type: "app",
        sub: "7335d417-61da-459d-899c-0a01c76a2f94",
        ...claims,
      };
      return new SignJWT(payload)
        .setProtectedHeader({ kid: `key-${generation}`, alg: "RS256", typ: "JWT", ...header })
        .sign(pair.privateKey);
    },
    async rotate() {
      generation += 1;
      pair = await newPair();
    },
  };
  const real = globalThis.fetch;
  const spy = vi.spyOn(globalThis, "fetch").mockImplementation(async (input, init) => {
    const url = input instanceof Request ? input.url : input.toString();
    if (url !== `https://${TEAM}/cdn-cgi/access/certs`) return real(input, init);
    team.reads += 1;
    if (team.answer !== undefined) return team.answer();
    const { kty, n, e } = (await crypto.subtle.exportKey("jwk", pair.publicKey)) as JsonWebKey;
    return Response.json({ keys: [{ kid: `key-${generation}`, kty, n, e, alg: "RS256", use: "sig" }] });
  });
  onTestFinished(() => spy.mockRestore());
  return team;
}

const newPair = async (): Promise<CryptoKeyPair> =>
  (await crypto.subtle.generateKey(
    {
      name: "RSASSA-PKCS1-v1_5",
      modulusLength: 2_048,
      publicExponent: new Uint8Array([1, 0, 1]),
      hash: "SHA-256",
    },
    true,
    ["sign", "verify"],
  )) as CryptoKeyPair;
