import type { Role } from "../core/directory/directory.ts";

/** Who calls, as a checked key says. */
export interface Principal {
  role: Role;
  keyId: string;
  /** Of the key. */
  expiresAtMs: number;
  /** Of a cell key. */
  cell: string | null;
}

/** Ids are positive int64: decimal, above zero, without leading zeros. */
export const isCellId = (text: string): boolean => /^[1-9]\d{0,18}$/.test(text) && BigInt(text) <= MAX_INT64;

const MAX_INT64 = 2n ** 63n - 1n;
