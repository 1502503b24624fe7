import type { Role } from "../kernel/role.ts";

/** What a caller has shown. A certificate or token has the name of its authority or issuer. */
export type Credential =
  | { kind: "key" }
  /** `name`: the subject alternative name for which a rule grants something. */
  | { kind: "certificate"; issuedBy: string; name: string; issuedAtMs: number }
  /** `name`: the subject. */
  | { kind: "token"; issuedBy: string; name: string };

/** The caller that a verified credential identifies. */
export interface Principal {
  role: Role;
  /** The id of the key, or the one that is made from the certificate or token (A4). */
  keyId: string;
  /** When the credential expires. */
  expiresAtMs: number;
  /** The cell of the role `cell`; null for other roles. */
  cell: string | null;
  /** Null: a user of Cloudflare Access in the console. */
  credential: Credential | null;
}

/** Cell ids are int64 above 0, written in decimal without leading zeros. */
export const isCellId = (text: string): boolean => /^[1-9]\d{0,18}$/.test(text) && BigInt(text) <= MAX_INT64;

const MAX_INT64 = 2n ** 63n - 1n;

/** The roles that may call a route. */
export type Roles = "anyone" | readonly Role[];

/**
 * Decides whether a caller may use a route, before anything is looked up, so the answer doesn't reveal what
 * exists. `pathCell` is the cell in the path as it was sent, or undefined if the path has none. A cell key
 * may only use the paths of its own cell.
 */
export function isAllowed({ role, cell }: Principal, roles: Roles, pathCell: string | undefined): boolean {
  if (roles === "anyone") return true;
  if (!roles.includes(role)) return false;
  return role !== "cell" || pathCell === undefined || pathCell === cell;
}
