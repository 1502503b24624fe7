import type { Role } from "../core/directory/directory.ts";
import { decodeBase64Url, decodeUtf8, encodeBase64Url } from "./base64url.ts";
import type { Hmac } from "./hmac.ts";
import { isCellId } from "./principal.ts";

/** What a key says of its holder. Times are seconds since 1970. */
export interface KeyPayload {
  v: 1;
  id: string;
  role: Role;
  /** Of cell keys, and of no others. */
  cell?: string;
  iat: number;
  exp: number;
}

/** `lhk_<payload>.<signature>`: verifies by itself, with the deployment's secret and nothing else. */
const PREFIX = "lhk_";

/** Far more than any key that we make; bounds the work on one that we did not. */
const MAX_KEY_LENGTH = 1_024;

export interface ParsedKey {
  payload: KeyPayload;
  /** What the signature is over. */
  signed: string;
  signature: Uint8Array<ArrayBuffer>;
}

export async function makeKey(payload: KeyPayload, hmac: Hmac): Promise<string> {
  const signed = PREFIX + encodeBase64Url(new TextEncoder().encode(JSON.stringify(payload)));
  return `${signed}.${encodeBase64Url(await hmac.sign(signed))}`;
}

/** Only reads: a parsed key is worth nothing until its signature is checked. */
export function parseKey(token: string): ParsedKey | undefined {
  if (token.length > MAX_KEY_LENGTH || !token.startsWith(PREFIX)) return undefined;
  const [signed, signatureText, more] = token.split(".");
  if (signed === undefined || signatureText === undefined || more !== undefined) return undefined;
  const bytes = decodeBase64Url(signed.slice(PREFIX.length));
  const signature = decodeBase64Url(signatureText);
  if (bytes === undefined || signature?.length !== 32) return undefined;
  const payload = payloadOf(bytes);
  return payload && { payload, signed, signature };
}

const FIELDS = new Set(["v", "id", "role", "cell", "iat", "exp"]);
const ROLES: readonly unknown[] = ["cell", "router", "operator"] satisfies Role[];

function payloadOf(bytes: Uint8Array): KeyPayload | undefined {
  const value = parseJson(decodeUtf8(bytes));
  if (typeof value !== "object" || value === null || Object.keys(value).some((field) => !FIELDS.has(field)))
    return undefined;
  const { v, id, role, cell, iat, exp } = value as Record<keyof KeyPayload, unknown>;
  const sound =
    v === 1 &&
    typeof id === "string" &&
    /^[\w-]{1,64}$/.test(id) &&
    ROLES.includes(role) &&
    (role === "cell" ? typeof cell === "string" && isCellId(cell) : cell === undefined) &&
    Number.isSafeInteger(iat) &&
    Number.isSafeInteger(exp) &&
    Number(exp) > Number(iat);
  return sound ? (value as KeyPayload) : undefined;
}

function parseJson(text: string | undefined): unknown {
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
