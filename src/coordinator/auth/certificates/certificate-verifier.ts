import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex } from "@noble/hashes/utils.js";
import type { CertificateRule, Identities } from "../../capabilities/identities/identities.ts";
import type { Limits } from "../../../common/limits.ts";
import { ok, refused, type Refusal, type Result } from "../../kernel/refusal.ts";
import { asciiLowerCase } from "../ascii-lower-case.ts";
import { madeKeyId } from "../made-key-id.ts";
import type { Principal } from "../principal.ts";
import { authorityFault, isForClients, readPem } from "./authority.ts";
import { readCertificate, type ReadCertificate } from "./certificate.ts";
import { isSignedBy } from "./signature.ts";

/** Real ones have 1 to 2 kB. */
const MAX_BYTES = 16_384;
/** The largest expected difference between the clocks of an authority and of this isolate. */
const CLOCK_ERROR_MS = 60_000;
/** As for keys: their lifetimes are counted by another clock, too. */
const LIFETIME_ERROR_S = 300;

/** An authority of the identities whose certificate can be used. */
interface TrustedAuthority {
  name: string;
  certificate: ReadCertificate;
  rules: readonly CertificateRule[];
}

/** A certificate that an authority has signed, and that may identify clients while it is valid. */
interface Checked {
  keyId: string;
  notBeforeMs: number;
  notAfterMs: number;
  authority: TrustedAuthority;
  /** The first that fits. Undefined: none does. */
  rule: CertificateRule | undefined;
}

/** What is remembered while the identities are the same. */
interface Known {
  identities: Identities;
  authorities: readonly TrustedAuthority[];
  /** By the digest of the certificate, the least recently used first. */
  checked: Map<string, Checked>;
}

/**
 * Recognizes holders of client certificates, and remembers certificates that it has checked. An isolate has
 * one per deployment.
 */
export class CertificateVerifier {
  readonly #limits: Limits;
  #known: Known | undefined;

  constructor(limits: Limits) {
    this.#limits = limits;
  }

  /**
   * Returns the principal of a certificate in DER whose holder TLS has proved (A4). It doesn't check whether
   * the certificate was revoked.
   */
  async verify(der: Uint8Array, identities: Identities, nowMs: number): Promise<Result<Principal>> {
    if (der.length > MAX_BYTES) return bad(`the client certificate is larger than ${MAX_BYTES} bytes`);
    const known = this.#knownOf(identities);
    const digest = bytesToHex(sha256(der));
    const found = remembered(known, digest, nowMs) ?? (await this.#check(known, digest, der, nowMs));
    if ("code" in found) return { ok: false, refusal: found };
    const { keyId, notBeforeMs, notAfterMs, authority, rule } = found;
    const fault = this.#timeFault(found, nowMs);
    if (fault !== undefined) return fault;
    if (rule === undefined) return NO_RULE;
    return ok({
      role: rule.role,
      keyId,
      expiresAtMs: notAfterMs,
      cell: rule.cell,
      credential: {
        kind: "certificate",
        issuedBy: authority.name,
        name: rule.name,
        issuedAtMs: notBeforeMs,
      },
    });
  }

  #knownOf(identities: Identities): Known {
    if (this.#known?.identities !== identities)
      this.#known = { identities, authorities: trusted(identities), checked: new Map() };
    return this.#known;
  }

  /** Checks what doesn't depend on the time, and that the authority is valid now. */
  async #check(
    { authorities, checked }: Known,
    digest: string,
    der: Uint8Array,
    nowMs: number,
  ): Promise<Checked | Refusal> {
    const certificate = readCertificate(der);
    if (certificate === undefined)
      return refusal("the client certificate cannot be read; send an X.509 certificate in DER");
    const signer = await signerOf(certificate, authorities, nowMs);
    if ("code" in signer) return signer;
    const fault = leafFault(certificate);
    if (fault !== undefined) return refusal(fault);
    const found: Checked = {
      keyId: keyIdOf(certificate),
      notBeforeMs: certificate.notBeforeMs,
      notAfterMs: certificate.notAfterMs,
      ...signer,
    };
    checked.set(digest, found);
    const [oldest] = checked.keys();
    if (checked.size > this.#limits.keyCache && oldest !== undefined) checked.delete(oldest);
    return found;
  }

  /**
   * The validity is counted from its beginning as well as from now, as for keys. A revocation is remembered
   * for the longest lifetime of a key, so a certificate that is valid for longer could outlive its own
   * revocation, although it was refused when it was revoked (A1).
   */
  #timeFault({ notBeforeMs, notAfterMs }: Checked, nowMs: number): Bad | undefined {
    const { keyLifetimeS } = this.#limits;
    if (notAfterMs <= nowMs)
      return bad("the client certificate has expired; get a new one", { reason: "KEY_EXPIRED" });
    if (notBeforeMs > nowMs + CLOCK_ERROR_MS)
      return bad(`the client certificate is not valid before ${new Date(notBeforeMs).toISOString()}`);
    if (notAfterMs - Math.min(notBeforeMs, nowMs) > (keyLifetimeS + LIFETIME_ERROR_S) * 1_000)
      return bad(
        `the client certificate is valid from ${new Date(notBeforeMs).toISOString()} until ` +
          `${new Date(notAfterMs).toISOString()}; get one that is valid for no longer than a key may be, ` +
          `which is ${keyLifetimeS} s (key_lifetime_s)`,
      );
    return undefined;
  }
}

type Bad = { ok: false; refusal: Refusal };

const bad = (detail: string, more: Pick<Refusal, "reason"> = {}): Bad =>
  refused("UNAUTHENTICATED", detail, more);

const refusal = (detail: string): Refusal => bad(detail).refusal;

const NO_RULE = refused(
  "PERMISSION_DENIED",
  "no rule of the authority that signed the client certificate grants anything to one of its subject " +
    "alternative names; an operator can add one",
);

/** Marks it as used. Undefined: it isn't known, or its authority is not valid now. */
function remembered({ checked }: Known, digest: string, nowMs: number): Checked | undefined {
  const found = checked.get(digest);
  if (found === undefined) return undefined;
  checked.delete(digest);
  if (!isValidAt(found.authority.certificate, nowMs)) return undefined;
  checked.set(digest, found);
  return found;
}

const isValidAt = ({ notBeforeMs, notAfterMs }: ReadCertificate, nowMs: number): boolean =>
  notBeforeMs <= nowMs + CLOCK_ERROR_MS && nowMs < notAfterMs;

/** Authorities that this version refuses, though another one has stored them, sign nothing. */
const trusted = ({ authorities }: Identities): TrustedAuthority[] =>
  authorities.flatMap(({ name, certificate: pem, rules }) => {
    const certificate = readPem(pem);
    const isUsable = typeof certificate !== "string" && authorityFault(certificate) === undefined;
    return isUsable ? [{ name, certificate, rules }] : [];
  });

/**
 * Finds the authority that signed the certificate: the first with a rule that fits it, or else the first.
 * Several may have the same name, or even the same key, because a new one is accepted before the old one is
 * removed.
 */
async function signerOf(
  certificate: ReadCertificate,
  authorities: readonly TrustedAuthority[],
  nowMs: number,
): Promise<Pick<Checked, "authority" | "rule"> | Refusal> {
  const { issuer, signature, signedBytes } = certificate;
  let withoutRule: Pick<Checked, "authority" | "rule"> | undefined;
  let hasSigned = false;
  for (const authority of authorities) {
    const { subject, publicKey } = authority.certificate;
    if (subject !== issuer || !(await isSignedBy(publicKey, signature, signedBytes))) continue;
    hasSigned = true;
    if (!isValidAt(authority.certificate, nowMs)) continue;
    const rule = ruleFor(certificate, authority.rules);
    if (rule !== undefined) return { authority, rule };
    withoutRule ??= { authority, rule };
  }
  if (withoutRule !== undefined) return withoutRule;
  return refusal(
    hasSigned
      ? "the authority that signed the client certificate has expired or is not valid yet; an operator " +
          "can replace it"
      : "no authority that is accepted here has signed the client certificate",
  );
}

/** Says why a certificate can't identify a client. */
function leafFault(certificate: ReadCertificate): string | undefined {
  const { isAuthority, keyUsages, unknownCritical } = certificate;
  if (isAuthority) return "the client certificate is that of an authority; use one that it has signed";
  if (!isForClients(certificate))
    return "the client certificate is not for clients; its extended key usage must have clientAuth";
  if (keyUsages?.includes("digitalSignature") === false)
    return "the client certificate is not for clients; its key usage must have digitalSignature";
  if (unknownCritical !== undefined)
    return `the client certificate has the critical extension ${unknownCritical}, which is not supported`;
  return undefined;
}

/**
 * Makes the id from the bytes that the authority has signed. The holder of a certificate can change others:
 * with (r, s), (r, n - s) is a valid signature of ECDSA, too. With another id, that certificate would not be
 * revoked (A1).
 */
const keyIdOf = ({ signedBytes }: ReadCertificate): string => madeKeyId(new Uint8Array(signedBytes));

/** The first rule that names one of the certificate's names. Both may be hundreds. */
function ruleFor({ names }: ReadCertificate, rules: readonly CertificateRule[]): CertificateRule | undefined {
  const compared = new Set(names.map(comparedName));
  return rules.find((rule) => compared.has(comparedName(rule)));
}

/** Names must be equal as a whole, so a certificate for `*.example.com` fits no other name. */
const comparedName = ({ kind, name }: Pick<CertificateRule, "kind" | "name">): string =>
  `${kind} ${kind === "dns" ? asciiLowerCase(name) : name}`;

/** The id by which a certificate in DER is logged and revoked. Undefined: it cannot be read. */
export function certificateIdOf(der: Uint8Array): string | undefined {
  const certificate = der.length > MAX_BYTES ? undefined : readCertificate(der);
  return certificate && keyIdOf(certificate);
}
