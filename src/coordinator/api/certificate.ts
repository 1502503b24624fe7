import { ok, refused, type Result } from "../kernel/refusal.ts";

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
