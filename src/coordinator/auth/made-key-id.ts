import { sha256 } from "@noble/hashes/sha2.js";
import { stringify } from "uuid";

/**
 * Makes the id under which something that is no key is logged, listed and revoked like one (A4): the same
 * UUID whenever it is seen. Version 8 is the one for such hashes (RFC 9562).
 */
export function madeKeyId(content: Uint8Array): string {
  const bytes = sha256(content).slice(0, 16);
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x80;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  return stringify(bytes);
}

/** The id by which all tokens of a subject are logged and revoked. */
export const tokenIdOf = (issuer: string, subject: string): string =>
  madeKeyId(new TextEncoder().encode(JSON.stringify(["token", issuer, subject])));
