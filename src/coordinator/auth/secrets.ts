import { refused, type Result } from "../kernel/refusal.ts";

/** The minimum length in characters. Written in hex, that is at least 128 bits. */
const MIN_SECRET_LENGTH = 32;

export interface Secrets {
  current: string;
  /** Still accepted while the secret is rotated. Nothing new is signed with it. */
  previous: string | undefined;
}

interface SecretVariables {
  LEASEHOLD_SIGNING_SECRET?: string;
  LEASEHOLD_PREVIOUS_SIGNING_SECRET?: string;
}

/**
 * Reads the signing secrets. If one is missing or too short, the deployment refuses every call that needs a
 * key.
 */
export function secretsOf(variables: SecretVariables): Result<Secrets> {
  const current = variables.LEASEHOLD_SIGNING_SECRET ?? "";
  const previous = variables.LEASEHOLD_PREVIOUS_SIGNING_SECRET ?? "";
  if (current === "")
    return refused(
      "UNAVAILABLE",
      "LEASEHOLD_SIGNING_SECRET is not set, so keys can be neither made nor verified; set this secret",
    );
  if (current.length < MIN_SECRET_LENGTH) return refused("UNAVAILABLE", tooShort("LEASEHOLD_SIGNING_SECRET"));
  if (previous !== "" && previous.length < MIN_SECRET_LENGTH)
    return refused("UNAVAILABLE", tooShort("LEASEHOLD_PREVIOUS_SIGNING_SECRET"));
  return { ok: true, value: { current, previous: previous === "" ? undefined : previous } };
}

const tooShort = (variable: string): string =>
  `${variable} must have at least ${MIN_SECRET_LENGTH} characters; until then, keys can be neither made ` +
  "nor verified";

/**
 * Derived from the function that makes it, because the global type `CryptoKey` differs between workerd and
 * Node.
 */
type Key = Awaited<ReturnType<typeof crypto.subtle.importKey>>;

const utf8 = new TextEncoder();
const HMAC = { name: "HMAC", hash: "SHA-256" };

/**
 * Signs and verifies with one secret. It keeps the imported key, because importing costs more than signing.
 */
export class Hmac {
  readonly #key: Promise<Key>;

  /**
   * `purpose` derives a key of its own, so that a signature made for one use is not valid for another. Empty:
   * signs with the secret itself.
   */
  constructor(secret: string | Uint8Array, purpose = "") {
    this.#key = importKey(secret, purpose);
  }

  async sign(text: string): Promise<Uint8Array> {
    return new Uint8Array(await crypto.subtle.sign(HMAC, await this.#key, utf8.encode(text)));
  }

  /** Compares in constant time, because `crypto.subtle.verify` does. */
  async verify(text: string, signature: Uint8Array<ArrayBuffer>): Promise<boolean> {
    return crypto.subtle.verify(HMAC, await this.#key, signature, utf8.encode(text));
  }
}

async function importKey(secret: string | Uint8Array, purpose: string): Promise<Key> {
  const key = await importRaw(Uint8Array.from(typeof secret === "string" ? utf8.encode(secret) : secret));
  return purpose === ""
    ? key
    : importRaw(new Uint8Array(await crypto.subtle.sign(HMAC, key, utf8.encode(purpose))));
}

const importRaw = (bytes: Uint8Array<ArrayBuffer>): Promise<Key> =>
  crypto.subtle.importKey("raw", bytes, HMAC, false, ["sign", "verify"]);
