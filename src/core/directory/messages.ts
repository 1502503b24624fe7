import type { Envelope } from "../messages.ts";
import type { Placement } from "../placement.ts";

// What the directory stores, and the messages to it.

export interface Cell {
  cell: string;
  name: string;
  address: string;
  locationHint: string | null;
  createdAtMs: number;
  updatedAtMs: number;
}

export interface CellChange extends Envelope {
  cell: string;
  name?: string;
  address?: string;
  updatedAtMs: number;
}

export type Role = "cell" | "router" | "operator";

export interface MintedKey {
  keyId: string;
  role: Role;
  cell: string | null;
  note: string | null;
  createdAtMs: number;
  expiresAtMs: number;
  revokedAtMs: number | null;
}

/** Everything that requests need from the directory. Each isolate keeps a copy. */
export interface Snapshot {
  placement: Placement;
  cells: Cell[];
  /** The ids of revoked keys: those that expire last, at most `maxRevokedKeys`. */
  revokedKeys: string[];
  /** Keys that expire no later may be revoked without being listed, so all of them are refused (A1). */
  revokedThroughMs: number;
}

export type ListedKey = MintedKey & { position: number };

export interface KeyPage {
  keys: ListedKey[];
  more: boolean;
}
