import type { Role } from "../core/role.ts";

/** The caller that a verified key identifies. */
export interface Principal {
  role: Role;
  keyId: string;
  /** When the key expires. */
  expiresAtMs: number;
  /** The cell of a cell key; null for other roles. */
  cell: string | null;
}

/** Cell ids are int64 above 0, written in decimal without leading zeros. */
export const isCellId = (text: string): boolean => /^[1-9]\d{0,18}$/.test(text) && BigInt(text) <= MAX_INT64;

const MAX_INT64 = 2n ** 63n - 1n;
