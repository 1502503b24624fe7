import { id_kp_clientAuth, anyExtendedKeyUsage } from "@peculiar/asn1-x509";
import { readCertificate, type ReadCertificate } from "./certificate.ts";
import { ok, refused, type Result } from "../../kernel/refusal.ts";
import { isSupported } from "./signature.ts";

/** Far more than a certificate takes. The rest may be text that describes it. */
const MAX_PEM_LENGTH = 65_536;

const BEGIN = /-----BEGIN ([A-Z0-9 ]+)-----/g;
const BLOCK = /-----BEGIN CERTIFICATE-----([A-Za-z0-9+/=\s]*)-----END CERTIFICATE-----/;

/** Reads a PEM with one certificate, or says what is wrong with it. */
export function readPem(pem: string): ReadCertificate | string {
  const der = derOfPem(pem);
  if (typeof der === "string") return der;
  return readCertificate(der) ?? UNREADABLE;
}

const UNREADABLE = "the PEM has a certificate that cannot be read";

/** Returns the certificate of a PEM in DER, or says what is wrong with the PEM. */
export function derOfPem(pem: string): Uint8Array | string {
  if (pem.length > MAX_PEM_LENGTH) return `the PEM has more than ${MAX_PEM_LENGTH} characters`;
  const labels = [...pem.matchAll(BEGIN)].map(([, label = ""]) => label);
  if (labels.some((label) => label.endsWith("PRIVATE KEY")))
    return "the PEM has a private key; send only the certificate, and replace the key if others can read it";
  if (labels.length !== 1 || labels[0] !== "CERTIFICATE")
    return "the PEM must have exactly one certificate; give each authority a name of its own";
  return decoded(BLOCK.exec(pem)?.[1] ?? "") ?? UNREADABLE;
}

function decoded(base64: string): Uint8Array | undefined {
  try {
    return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  } catch {
    return undefined;
  }
}

/** Says why a certificate can't be that of an authority for clients. Undefined: it can be. */
export function authorityFault(certificate: ReadCertificate): string | undefined {
  const { isAuthority, keyUsages, unknownCritical } = certificate;
  if (!isAuthority) return "the certificate is not that of an authority: its basic constraints must say CA";
  if (keyUsages?.includes("keyCertSign") === false)
    return "the certificate is not that of an authority: its key usage must have keyCertSign";
  if (!isForClients(certificate)) return "its extended key usage must have clientAuth";
  if (unknownCritical === NAME_CONSTRAINTS)
    return "the authority has name constraints, which are not supported; use one without them";
  if (unknownCritical !== undefined)
    return `the certificate has the critical extension ${unknownCritical}, which is not supported`;
  return undefined;
}

const NAME_CONSTRAINTS = "2.5.29.30";

/** Whether its extended key usage, if it has one, allows TLS clients. */
export const isForClients = ({ purposes }: ReadCertificate): boolean =>
  purposes === undefined || purposes.includes(id_kp_clientAuth) || purposes.includes(anyExtendedKeyUsage);

export interface AuthorityFacts {
  /** For people, such as `CN=cells, O=Example`. */
  subject: string;
  expiresAtMs: number;
}

/**
 * Reads a PEM with exactly one certificate of an authority, for a change of the identities (A4). The
 * certificate may become valid later, so that an authority can be added before it signs.
 */
export async function readAuthority(pem: string, nowMs: number): Promise<Result<AuthorityFacts>> {
  const certificate = readPem(pem);
  if (typeof certificate === "string") return refused("INVALID_ARGUMENT", certificate);
  const { subjectText, publicKey, notAfterMs } = certificate;
  const fault = authorityFault(certificate);
  if (fault !== undefined) return refused("INVALID_ARGUMENT", fault);
  if (!(await isSupported(publicKey)))
    return refused(
      "INVALID_ARGUMENT",
      "the authority's key must be RSA with 2048 bits or more, ECDSA on P-256, P-384 or P-521, or Ed25519",
    );
  if (notAfterMs <= nowMs) return refused("INVALID_ARGUMENT", "the authority's certificate has expired");
  return ok({ subject: subjectText, expiresAtMs: notAfterMs });
}
