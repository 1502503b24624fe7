import type { BucketKey, CellState, Envelope, Operator, OperatorCall } from "../../kernel/messages.ts";

declare module "../../kernel/refusal.ts" {
  interface Reasons {
    CELL_REMOVING: true;
    CELL_NOT_REMOVING: true;
    CELL_NOT_DRAINING: true;
    CELL_HAS_LEASES: true;
    EXPORT_DIFFERS: true;
  }
}

declare module "../../kernel/messages.ts" {
  interface LedgerCopies {
    /** When the cell was removed, as the directory has it (X5). Null: it was not. */
    removedAtMs: number | null;
  }
  interface BeginRequest {
    /** Only the ledger itself sets it, for the leases with which it removes a cell (X3). */
    isRemoval?: true;
  }
  interface DecideRequest {
    /** Only the ledger itself sets it, for the leases with which it removes a cell (X3). */
    isRemoval?: true;
  }
  interface CellStates {
    /** The ledger grants only the leases of the removal (X3). */
    REMOVING: true;
    /** The cell has no claims, and its keys are refused (X4). */
    REMOVED: true;
  }
  interface CellStatus {
    /** Null: no step has started a removal. */
    removal: StoredRemoval | null;
  }
  interface Maintain {
    /** True if the directory has the cell as removed (X5). */
    isRemoved?: boolean;
  }
  interface MaintainAnswer {
    /** Null: the cell is not removed. */
    removed: RemovalEnd | null;
  }
}

/** What a ledger stores of the removal of its cell. */
export interface StoredRemoval {
  /** The number of claims that the export has. */
  records: number;
  /** The number of claims that its committed leases have released. */
  released: number;
  /** The ledger's position before the claims were compared. While it is the last one, a step may start. */
  position: number;
  /** Null: it has not ended. */
  end: RemovalEnd | null;
}

/** When a removal has ended, and who has ended it (X5). */
export interface RemovalEnd {
  atMs: number;
  operator: Operator;
}

/** Approves the removal of a cell whose claims were compared with an export (X2). */
export interface ApproveRemoval extends Envelope {
  /** The ledger's position before the claims were compared. */
  position: number;
  /** The number of claims that the export has. */
  records: number;
}

/** Releases up to `limit` claims of a cell that is being removed. */
export interface RemovalStep extends OperatorCall {
  /** Only the first step of a removal needs it (A2). */
  stateVersion: number;
  limit: number;
}

export interface RemovalProgress {
  /** `REMOVED`: no claim is left. */
  state: CellState;
  /** The claims that this step has released. */
  released: number;
  /** The claims of the export that no step has released yet. */
  left: number;
  /** Null: the removal has not ended. */
  end: RemovalEnd | null;
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

/** Tells that a ledger has removed its cell (X5). The operator is the one who ended the removal. */
export interface RemovedCell extends OperatorCall {
  cell: string;
  removedAtMs: number;
}
