import type { Role } from "../kernel/role.ts";
import { decodeBase64Url, decodeUtf8, encodeBase64Url } from "./base64url.ts";
import type { Hmac } from "./secrets.ts";
import { isCellId } from "./principal.ts";

/** The signed content of a key. Times are seconds since 1970. */
export interface KeyPayload {
  v: 1;
  id: string;
  role: Role;
  /** Present exactly in cell keys. */
  cell?: string;
  iat: number;
  exp: number;
}

/** A key is `lhk_<payload>.<signature>`. Verifying it needs only the deployment's secret, not a lookup. */
const PREFIX = "lhk_";

/** Far longer than any key that `makeKey` makes. It limits the work on text that is not a key. */
const MAX_KEY_LENGTH = 1_024;

export interface ParsedKey {
  payload: KeyPayload;
  /** The text that is signed. */
  signed: string;
  signature: Uint8Array<ArrayBuffer>;
}

export async function makeKey(payload: KeyPayload, hmac: Hmac): Promise<string> {
  const signed = PREFIX + encodeBase64Url(new TextEncoder().encode(JSON.stringify(payload)));
  return `${signed}.${encodeBase64Url(await hmac.sign(signed))}`;
}

/** Parses a key. Its signature is not checked yet, so the payload must not be trusted. */
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

const FIELDS: ReadonlySet<string> = new Set(["v", "id", "role", "cell", "iat", "exp"]);
const ROLES: readonly unknown[] = [
  "cell",
  "router",
  "operator",
  "viewer",
  "scraper",
  "bridge",
] satisfies Role[];

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
