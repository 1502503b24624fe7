import { decodeBase64Url, decodeUtf8, encodeBase64Url } from "./base64url.ts";
import { Hmac, type Secrets } from "./secrets.ts";
import type { Principal } from "./principal.ts";

/** A session ends this long after the sign-in, whether it was used or not. */
export const SESSION_S = 1_800;

/** Longer than any session. It limits the work on a text that is none. */
const MAX_LENGTH = 1_024;

export type ConsoleRole = "operator" | "viewer";

/** What a session cookie says. It has no key, and the API does not accept it. */
export interface ConsoleSession {
  /** Random, so that the form tokens of two sessions differ. */
  id: string;
  keyId: string;
  role: ConsoleRole;
  keyExpiresAtMs: number;
  expiresAtMs: number;
  /** The address of a user of Cloudflare Access. Undefined: somebody signed in with a key. */
  email?: string;
}

export const isConsoleRole = (role: string): role is ConsoleRole => role === "operator" || role === "viewer";

export const principalOf = ({ keyId, role, keyExpiresAtMs, email }: ConsoleSession): Principal => ({
  keyId,
  role,
  expiresAtMs: keyExpiresAtMs,
  cell: null,
  credential: email === undefined ? { kind: "key" } : null,
});

/** Signs and reads the sessions of the console, with keys derived from the signing secrets. */
export class ConsoleSessions {
  readonly #session: readonly Hmac[];
  readonly #form: readonly Hmac[];

  constructor({ current, previous }: Secrets) {
    const secrets = previous === undefined ? [current] : [current, previous];
    this.#session = secrets.map((secret) => new Hmac(secret, "leasehold console session"));
    this.#form = secrets.map((secret) => new Hmac(secret, "leasehold console form"));
  }

  /** Starts a session of a verified key, and returns the text of its cookie. */
  async start({ keyId, expiresAtMs }: Principal, role: ConsoleRole, nowMs: number): Promise<string> {
    const session: ConsoleSession = {
      id: encodeBase64Url(crypto.getRandomValues(new Uint8Array(16))),
      keyId,
      role,
      keyExpiresAtMs: expiresAtMs,
      expiresAtMs: Math.min(nowMs + SESSION_S * 1_000, expiresAtMs),
    };
    const signed = encodeBase64Url(new TextEncoder().encode(JSON.stringify(session)));
    return `${signed}.${await signatureOf(this.#session, signed)}`;
  }

  /** Undefined: the text is not a session of this deployment, or the session has ended. */
  async read(text: string, nowMs: number): Promise<ConsoleSession | undefined> {
    const [signed, signature, more] = text.length > MAX_LENGTH ? [] : text.split(".");
    if (signed === undefined || signature === undefined || more !== undefined) return undefined;
    if (!(await isSigned(this.#session, signed, signature))) return undefined;
    const bytes = decodeBase64Url(signed);
    const json = bytes && decodeUtf8(bytes);
    // Only `start` signs with this key, so the form needs no check.
    const session = json === undefined ? undefined : (JSON.parse(json) as ConsoleSession);
    return session !== undefined && nowMs < session.expiresAtMs ? session : undefined;
  }

  /** The token that every form of the session has, against forged requests. */
  formToken({ id }: ConsoleSession): Promise<string> {
    return signatureOf(this.#form, id);
  }

  isFormToken({ id }: ConsoleSession, token: string): Promise<boolean> {
    return isSigned(this.#form, id, token);
  }
}

const signatureOf = async ([hmac]: readonly Hmac[], text: string): Promise<string> =>
  hmac === undefined ? "" : encodeBase64Url(await hmac.sign(text));

async function isSigned(hmacs: readonly Hmac[], text: string, signature: string): Promise<boolean> {
  const bytes = decodeBase64Url(signature);
  if (bytes?.length !== 32) return false;
  for (const hmac of hmacs) if (await hmac.verify(text, bytes)) return true;
  return false;
}
