import type { Envelope, HistoryPoint, OperatorCall } from "../../kernel/messages.ts";
import type { Role } from "../../kernel/role.ts";

export interface MintedKey {
  keyId: string;
  role: Role;
  cell: string | null;
  note: string | null;
  createdAtMs: number;
  expiresAtMs: number;
  revokedAtMs: number | null;
}

/** Stores what describes a key that was minted, or revokes a key. */
export interface KeyChange extends OperatorCall {
  key: MintedKey;
}

export type ListedKey = MintedKey & { position: number };

export type RevokedKey = Pick<MintedKey, "keyId" | "expiresAtMs">;

/** Asks for the revoked keys of a cell, those that expire last, for a ledger that has lost them (H7). */
export interface ListRevokedKeys extends Envelope {
  cell: string;
  limit: number;
}

export interface KeyPage {
  /** How far the directory had got when it read this. Null before its first change. */
  point: HistoryPoint | null;
  keys: ListedKey[];
  more: boolean;
}

/** Revokes a key of the cell. */
export interface RevokeCellKey extends OperatorCall {
  keyId: string;
  expiresAtMs: number;
}
