import { ok, refused, type Result } from "../../kernel/refusal.ts";
import { authorityFault, readPem } from "./authority.ts";
import { isSupported } from "./signature.ts";

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
