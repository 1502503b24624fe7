import type { BucketKey, Envelope } from "../../kernel/messages.ts";

declare module "../../kernel/refusal.ts" {
  interface Reasons {
    CELL_REMOVING: true;
    CELL_NOT_REMOVING: true;
    CELL_NOT_DRAINING: true;
    CELL_HAS_LEASES: true;
    EXPORT_DIFFERS: true;
  }
}

/** Asks a shard for some claims of a cell, whatever they are. */
export interface ListCellClaims extends Envelope {
  cell: string;
  limit: number;
}

export interface CellClaims {
  claims: (BucketKey & { epoch: number })[];
  /** The ids of some transfers that hold claims of the cell on this shard. */
  transfers: string[];
}

/** A position in a shard's claims of one cell: source type, source order, bucket type, canonical form. */
export type CellClaimPosition = [number, string, number, string];

/** Counts claims of a cell, as far as one message gets (M7). */
export interface CountCellClaims extends Envelope {
  cell: string;
  /** Where to continue. Null: at the first claim. */
  behind: CellClaimPosition | null;
}

export interface ClaimCount {
  sourceType: number;
  type: number;
  claims: number;
}

export interface CellClaimCounts {
  counts: ClaimCount[];
  /** Null: no claim follows. */
  next: CellClaimPosition | null;
}
