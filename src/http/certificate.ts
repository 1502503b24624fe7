import { ok, refused, type Result } from "../core/refusal.ts";

const certificates = new WeakMap<Request, Uint8Array>();

/**
 * Makes the API treat this request as one of the holder of a certificate in DER. The servers of Node call it
 * once TLS has verified the certificate. Nothing that arrives from outside is the same object, so nobody else
 * can present one.
 */
export const presentCertificate = (request: Request, der: Uint8Array): void =>
  void certificates.set(request, der);

/** What Cloudflare says about the client's certificate (`request.cf`). */
interface TlsClientAuth {
  certPresented?: string;
  /** `SUCCESS`, `NONE`, or `FAILED:` with the reason. */
  certVerified?: string;
  certRevoked?: string;
  certRFC9440?: string;
  certRFC9440TooLarge?: boolean;
}

/**
 * Returns the certificate in DER whose holder TLS has proved to be the sender of the request. Headers say
 * nothing here, because everybody can send them. Undefined: there is none, or Cloudflare has not verified it.
 */
export function certificateOf(request: Request): Result<Uint8Array | undefined> {
  const presented = certificates.get(request);
  if (presented !== undefined) return ok(presented);
  // The runtime of Workers sets `cf`, or a Worker with a service binding to this one, which can say anything.
  const { tlsClientAuth } = (request as { cf?: { tlsClientAuth?: TlsClientAuth } }).cf ?? {};
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
export function bridgedCertificateOf(headers: Headers): Result<Uint8Array | undefined> {
  const text = headers.get("client-cert");
  if (text === null) return ok(undefined);
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
