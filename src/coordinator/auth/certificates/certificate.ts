import { AsnConvert } from "@peculiar/asn1-schema";
import {
  BasicConstraints,
  Certificate,
  ExtendedKeyUsage,
  id_ce_basicConstraints,
  id_ce_extKeyUsage,
  id_ce_keyUsage,
  id_ce_subjectAltName,
  KeyUsage,
  SubjectAlternativeName,
  type Extension,
  type GeneralName,
  type KeyUsageType,
  type Name,
} from "@peculiar/asn1-x509";
import type { CertificateRule } from "../../capabilities/identities/identities.ts";
import type { PublicKey, Signature } from "./signature.ts";
import { bytesToHex } from "@noble/hashes/utils.js";

/** What a certificate says. Nothing of it has been checked. */
export interface ReadCertificate {
  /** The bytes that the issuer has signed: all of the certificate except the signature. */
  signedBytes: ArrayBuffer;
  signature: Signature;
  publicKey: PublicKey;
  /** The names of issuer and subject in DER, as hex, to compare them. */
  issuer: string;
  subject: string;
  /** The subject for people, such as `CN=cells, O=Example`. */
  subjectText: string;
  notBeforeMs: number;
  notAfterMs: number;
  isAuthority: boolean;
  /** Undefined: the certificate doesn't restrict them. */
  keyUsages: readonly KeyUsageType[] | undefined;
  /** OIDs of extended key usages. Undefined: the certificate doesn't restrict them. */
  purposes: readonly string[] | undefined;
  /** Its subject alternative names, with those of DNS as they are in the certificate. */
  names: readonly Pick<CertificateRule, "kind" | "name">[];
  /** The OID of a critical extension that this code doesn't know. Nobody may use the certificate. */
  unknownCritical: string | undefined;
}

/** Reads a certificate in DER. Undefined: it is none. It never throws. */
export function readCertificate(der: Uint8Array): ReadCertificate | undefined {
  if (!isOneElement(der)) return undefined;
  try {
    return factsOf(AsnConvert.parse(der, Certificate));
  } catch {
    return undefined;
  }
}

const SEQUENCE = 0x30;

/** Whether the bytes are one sequence and nothing after it. The parser ignores what follows. */
function isOneElement(der: Uint8Array): boolean {
  const [tag, first = 0] = der;
  if (tag !== SEQUENCE) return false;
  const lengthBytes = first < 0x80 ? 0 : first - 0x80;
  let length = first < 0x80 ? first : 0;
  for (const byte of der.subarray(2, 2 + lengthBytes)) length = length * 256 + byte;
  return lengthBytes <= 4 && 2 + lengthBytes + length === der.length;
}

/** Throws if something can't be read. */
function factsOf(certificate: Certificate): ReadCertificate | undefined {
  const { tbsCertificate: signed, tbsCertificateRaw, signatureAlgorithm, signatureValue } = certificate;
  const { extensions = [], validity, subjectPublicKeyInfo: key } = signed;
  const notBeforeMs = validity.notBefore.getTime().getTime();
  const notAfterMs = validity.notAfter.getTime().getTime();
  const oids = new Set(extensions.map(({ extnID }) => extnID));
  const isSound =
    tbsCertificateRaw !== undefined &&
    // An extension that is there twice may be read in two ways.
    oids.size === extensions.length &&
    // The signature doesn't cover the outer one.
    derOf(signed.signature) === derOf(signatureAlgorithm) &&
    Number.isFinite(notBeforeMs) &&
    Number.isFinite(notAfterMs);
  if (!isSound) return undefined;
  const constraints = valueOf(extensions, id_ce_basicConstraints, BasicConstraints);
  const usages = valueOf(extensions, id_ce_keyUsage, KeyUsage);
  const purposes = valueOf(extensions, id_ce_extKeyUsage, ExtendedKeyUsage);
  const names = valueOf(extensions, id_ce_subjectAltName, SubjectAlternativeName);
  const { parameters } = key.algorithm;
  return {
    signedBytes: tbsCertificateRaw,
    signature: { algorithm: signatureAlgorithm.algorithm, value: signatureValue },
    publicKey: {
      algorithm: key.algorithm.algorithm,
      parameters: parameters === null || parameters === undefined ? "" : hexOf(parameters),
      spki: AsnConvert.serialize(key),
    },
    issuer: derOf(signed.issuer),
    subject: derOf(signed.subject),
    subjectText: nameText(signed.subject),
    notBeforeMs,
    notAfterMs,
    isAuthority: constraints?.cA ?? false,
    keyUsages: usages?.toJSON(),
    purposes: purposes === undefined ? undefined : [...purposes],
    names: [...(names ?? [])].flatMap(nameOf),
    unknownCritical: extensions.find(({ critical, extnID }) => critical && !KNOWN.has(extnID))?.extnID,
  };
}

const derOf = (part: unknown): string => hexOf(AsnConvert.serialize(part));

const KNOWN: ReadonlySet<string> = new Set([
  id_ce_basicConstraints,
  id_ce_keyUsage,
  id_ce_extKeyUsage,
  id_ce_subjectAltName,
]);

function valueOf<T>(extensions: readonly Extension[], oid: string, type: new () => T): T | undefined {
  const extension = extensions.find(({ extnID }) => extnID === oid);
  return extension && AsnConvert.parse(extension.extnValue, type);
}

function nameOf({ dNSName, uniformResourceIdentifier }: GeneralName): ReadCertificate["names"] {
  if (dNSName !== undefined) return [{ kind: "dns", name: dNSName }];
  if (uniformResourceIdentifier !== undefined) return [{ kind: "uri", name: uniformResourceIdentifier }];
  return [];
}

/** The short names of RFC 4514 and of openssl. */
const ATTRIBUTES: Readonly<Record<string, string>> = {
  "2.5.4.3": "CN",
  "2.5.4.5": "serialNumber",
  "2.5.4.6": "C",
  "2.5.4.7": "L",
  "2.5.4.8": "ST",
  "2.5.4.10": "O",
  "2.5.4.11": "OU",
  "0.9.2342.19200300.100.1.25": "DC",
  "1.2.840.113549.1.9.1": "emailAddress",
};

/** Writes a subject for people, such as `CN=cells, O=Example`. Only DER is compared. */
const nameText = (name: Name): string =>
  [...name]
    .toReversed()
    .flatMap((attributes) => [...attributes])
    .map(({ type, value }) => `${ATTRIBUTES[type] ?? type}=${escaped(value.toString())}`)
    .join(", ");

const escaped = (text: string): string => text.replaceAll(/[\\,+"<>;]/g, (found) => `\\${found}`);

const hexOf = (bytes: ArrayBuffer): string => bytesToHex(new Uint8Array(bytes));
