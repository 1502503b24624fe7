import { compactVerify, decodeJwt, decodeProtectedHeader } from "jose";
import { isWebToken } from "./forms.ts";
import type { PublicKey } from "./public-keys.ts";

/** The claims of a token. Their types are not checked. */
export type Claims = Readonly<Record<string, unknown>>;

/** What a token says. It must not be trusted before its signature was checked. */
export interface WebToken {
  alg: string;
  kid: string | undefined;
  claims: Claims;
}

/** No token of an issuer is longer. It limits the work on a text that anybody may have sent. */
export const MAX_TOKEN_LENGTH = 16_384;

/**
 * Reads a token. Undefined: it is malformed, too long, or has extensions that must be understood (`crit`).
 * Other members of its header, such as `jku` and `jwk`, mean nothing.
 */
export function readWebToken(token: string): WebToken | undefined {
  if (token.length > MAX_TOKEN_LENGTH || !isWebToken(token)) return undefined;
  try {
    const { alg, kid, crit } = decodeProtectedHeader(token) as Record<string, unknown>;
    if (typeof alg !== "string" || crit !== undefined) return undefined;
    if (kid !== undefined && typeof kid !== "string") return undefined;
    return { alg, kid, claims: decodeJwt(token) };
  } catch {
    return undefined;
  }
}

/** Finds the key that has signed the token with this algorithm. */
export async function findSigner(
  token: string,
  alg: string,
  keys: readonly PublicKey[],
): Promise<PublicKey | undefined> {
  for (const key of keys)
    try {
      // The library imports each `jwk` object once.
      await compactVerify(token, key.jwk, { algorithms: [alg] });
      return key;
    } catch {
      // Another key may have signed it.
    }
  return undefined;
}

/** Whether the token is for this audience: its `aud` is it, or a list that contains it. */
export const isFor = ({ aud }: Claims, audience: string): boolean =>
  Array.isArray(aud) ? aud.includes(audience) : aud === audience;
