import { ECDSASigValue } from "@peculiar/asn1-ecc";
import { AsnConvert } from "@peculiar/asn1-schema";

/** A public key as a certificate contains it. */
export interface PublicKey {
  /** The OID of its algorithm. */
  algorithm: string;
  /** The parameters of the algorithm in DER, as hex. */
  parameters: string;
  /** All of it in DER. */
  spki: ArrayBuffer;
}

export interface Signature {
  /** The OID of its algorithm. */
  algorithm: string;
  value: ArrayBuffer;
}

interface Scheme {
  /** The OID of the keys that sign so. */
  key: string;
  name: "RSASSA-PKCS1-v1_5" | "ECDSA" | "Ed25519";
  hash?: "SHA-256" | "SHA-384" | "SHA-512";
}

const RSA = "1.2.840.113549.1.1.1";
const EC = "1.2.840.10045.2.1";
const ED25519 = "1.3.101.112";

/** Signatures that are accepted, by their OIDs. SHA-1 and MD5 are left out, because they can be forged. */
const schemes: ReadonlyMap<string, Scheme> = new Map<string, Scheme>([
  ["1.2.840.113549.1.1.11", { key: RSA, name: "RSASSA-PKCS1-v1_5", hash: "SHA-256" }],
  ["1.2.840.113549.1.1.12", { key: RSA, name: "RSASSA-PKCS1-v1_5", hash: "SHA-384" }],
  ["1.2.840.113549.1.1.13", { key: RSA, name: "RSASSA-PKCS1-v1_5", hash: "SHA-512" }],
  ["1.2.840.10045.4.3.2", { key: EC, name: "ECDSA", hash: "SHA-256" }],
  ["1.2.840.10045.4.3.3", { key: EC, name: "ECDSA", hash: "SHA-384" }],
  ["1.2.840.10045.4.3.4", { key: EC, name: "ECDSA", hash: "SHA-512" }],
  [ED25519, { key: ED25519, name: "Ed25519" }],
]);

interface Curve {
  namedCurve: string;
  /** The bytes of each of the two numbers of a signature. */
  bytes: number;
}

/** Curves by their OIDs in DER, as hex. */
const curves: ReadonlyMap<string, Curve> = new Map([
  ["06082a8648ce3d030107", { namedCurve: "P-256", bytes: 32 }],
  ["06052b81040022", { namedCurve: "P-384", bytes: 48 }],
  ["06052b81040023", { namedCurve: "P-521", bytes: 66 }],
]);

const MIN_RSA_BITS = 2_048;

/** Whether the key has signed the bytes. It never throws. */
export async function isSignedBy(
  key: PublicKey,
  { algorithm, value }: Signature,
  signedBytes: ArrayBuffer,
): Promise<boolean> {
  const scheme = schemes.get(algorithm);
  if (scheme === undefined || scheme.key !== key.algorithm) return false;
  try {
    const imported = await importKey(key, scheme);
    const signature = imported && (scheme.name === "ECDSA" ? plainSignature(key, value) : value);
    if (imported === undefined || signature === undefined) return false;
    return await crypto.subtle.verify(webAlgorithm(scheme), imported, signature, signedBytes);
  } catch {
    return false;
  }
}

/** Whether signatures of the key can be verified here. It never throws. */
export async function isSupported(key: PublicKey): Promise<boolean> {
  const scheme = [...schemes.values()].find((each) => each.key === key.algorithm);
  try {
    return scheme !== undefined && (await importKey(key, scheme)) !== undefined;
  } catch {
    return false;
  }
}

const webAlgorithm = ({ name, hash }: Scheme): { name: string; hash?: string } =>
  hash === undefined ? { name } : { name, hash };

/** The type has different names in the types of Workers and of Node. */
type ImportedKey = Awaited<ReturnType<typeof crypto.subtle.importKey>>;

/** Undefined: the curve is not supported, or the key is too short. Throws if the key is not sound. */
async function importKey(key: PublicKey, scheme: Scheme): Promise<ImportedKey | undefined> {
  const curve = curves.get(key.parameters);
  if (scheme.name === "ECDSA" && curve === undefined) return undefined;
  const algorithm = { ...webAlgorithm(scheme), ...(curve && { namedCurve: curve.namedCurve }) };
  const imported = await crypto.subtle.importKey("spki", key.spki, algorithm, false, ["verify"]);
  const { modulusLength = MIN_RSA_BITS } = imported.algorithm as { modulusLength?: number };
  return modulusLength < MIN_RSA_BITS ? undefined : imported;
}

/** Certificates have the two numbers of a signature in DER, WebCrypto has them one after the other. */
function plainSignature({ parameters }: PublicKey, value: ArrayBuffer): Uint8Array<ArrayBuffer> | undefined {
  const bytes = curves.get(parameters)?.bytes ?? 0;
  const { r, s } = AsnConvert.parse(value, ECDSASigValue);
  const plain = new Uint8Array(2 * bytes);
  for (const [index, number] of [r, s].entries()) {
    const digits = new Uint8Array(number);
    const start = digits.findIndex((byte) => byte !== 0);
    const significant = start === -1 ? new Uint8Array() : digits.subarray(start);
    if (significant.length > bytes) return undefined;
    plain.set(significant, (index + 1) * bytes - significant.length);
  }
  return plain;
}
