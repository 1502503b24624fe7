import type {
  AttemptId,
  CellState,
  Envelope,
  HistoryPoint,
  HoldPosition,
  LedgerCopies,
  Op,
  OperatorCall,
} from "../../kernel/messages.ts";
import type { BySide, DigestedClaims, TransferRange } from "../transfer/range.ts";

declare module "../../kernel/refusal.ts" {
  interface Reasons {
    HISTORY_LOST: true;
  }
}

declare module "../../kernel/messages.ts" {
  interface Envelope {
    /** To a ledger: the newest points that the sender has seen of shards, for the ledger to pass on (H2). */
    shards?: ShardPoints;
  }
  interface Told {
    /** The newest durable point of the sender. Absent before its first change (H2). */
    point?: HistoryPoint;
    /** From a ledger: points of shards that it has not told anybody yet. */
    shards?: ShardPoints;
  }
  interface Maintain {
    /** Absent if the directory cannot be reached, or has made no change yet. */
    directory?: ToldDirectory;
  }
  interface Remembered {
    /** The newest point of the directory that the ledger has seen, to compare (H2). */
    directory: HistoryPoint | null;
  }
}

declare module "../../kernel/directory/messages.ts" {
  /** With the last page, the loss is accepted (H8). */
  interface RestoreDirectory {
    /** If true, nothing is changed. */
    dryRun: boolean;
    /** Present if the operator knows of a loss that the directory has not noticed (H4). */
    declared?: DeclaredLoss;
    /** True if a shard has confirmed the placement of this message, so that it may be restored (P1). */
    isPlacementConfirmed: boolean;
  }
  interface DirectoryReconciliation {
    status: PartStatus;
  }
}

declare module "../../kernel/ledger/store.ts" {
  interface Applied {
    /** The newest point of each shard that this ledger had seen: incarnation and position, by shard. */
    shards: Record<string, [incarnation: number, position: number]>;
    /** The newest point of the directory that this ledger had seen: incarnation and position. */
    directory?: [incarnation: number, position: number];
  }
}

declare module "../../kernel/metrics/messages.ts" {
  interface PartMetrics {
    state: PartState;
  }
}

/** Points of shards, by the number of the shard. */
export type ShardPoints = Record<number, HistoryPoint>;

/** What the directory has told the cron of its history, for a ledger to remember (H3). */
export interface ToldDirectory {
  point: HistoryPoint;
  /** The point that the ledger has told before, if the directory has confirmed that it has it (H5). */
  confirmed: HistoryPoint | null;
}

// Worker → part, for operators (H6, H7)

/**
 * `lost`: the part has noticed that it has gone back in time, and refuses everything. `reconciling`: a shard
 * that has accepted its loss, and whose names are being verified.
 */
export type PartState = "complete" | "lost" | "reconciling";

/** What a part stores when it notices that it has gone back in time (H4). */
export interface LostHistory {
  /** Who has seen more of this part than the part has stored, such as `shard 3`; or an operator. */
  noticedBy: string;
  /** The point that is missing in this part's history. Null: an operator has declared the loss. */
  seen: HistoryPoint | null;
  /** The newest point that this part had, or null if it had none. */
  point: HistoryPoint | null;
  noticedAtMs: number;
}

export interface PartStatus {
  state: PartState;
  /** The newest durable point of this part. */
  point: HistoryPoint | null;
  /** What was lost, until the reconciliation is finished. */
  loss: LostHistory | null;
}

/**
 * A loss that an operator declares. The incarnation is the part's before the declaration. If the part has
 * accepted a loss since, a late or repeated message declares nothing.
 */
export interface DeclaredLoss {
  incarnation: number;
}

export interface ReconcileShard extends OperatorCall {
  /** All cells of the deployment. Each of their ledgers is asked. */
  cells: string[];
  /** If true, nothing is changed. */
  dryRun: boolean;
  /** Present if the operator knows of a loss that the part has not noticed (H4). */
  declared?: DeclaredLoss;
}

/** The leases of one cell that the shard knew before it went back in time. */
interface LostLeases {
  cell: string;
  /** The number of granted leases whose holds are lost. A commit of them finds no hold. */
  outstanding: number;
  /** The number of decided leases that the shard may have to get again, among the newest outcomes. */
  decided: number;
  /** The ids of some of the granted leases. */
  leases: string[];
}

export interface ShardReconciliation {
  status: PartStatus;
  /** The cells that have leases which the shard has lost. */
  lost: LostLeases[];
  /** The cells whose ledgers could not be asked. While there are any, the loss cannot be accepted. */
  unreachable: string[];
}

/** Takes a shard back into service (H6). */
export interface FinishShard extends OperatorCall {
  /** The cells that the directory has as removed (X5). The shard must have no name of theirs. */
  removedCells: readonly string[];
}

export interface ReconcileLedger extends LedgerCopies {
  dryRun: boolean;
  declared?: DeclaredLoss;
  /** How far D1 has seen the ledger. Absent: D1 has seen nothing of it. */
  copied?: HistoryPoint;
}

/** The holds of one shard whose leases the ledger has lost. */
export interface RebuiltLeases {
  shard: number;
  holds: number;
  leases: number;
}

export interface LedgerReconciliation {
  status: PartStatus;
  cellState: CellState;
  rebuilt: RebuiltLeases[];
  /** The number of different leases in `rebuilt`. */
  leases: number;
  /** The shards that could not be asked. While there are any, the loss cannot be accepted. */
  unreachable: number[];
}

// Shard → ledger, while the shard is reconciled

/** Asks what a ledger knows of a shard that has gone back in time. */
export interface KnowledgeRequest extends Envelope {
  shard: number;
  /** What is left of the shard's history: its newest point, and its newest incarnations, newest first. */
  point: HistoryPoint | null;
  incarnations: [incarnation: number, firstPosition: number][];
}

export interface Knowledge extends Omit<LostLeases, "cell"> {
  /** The newest point of the shard that the ledger has seen. */
  seen: HistoryPoint | null;
}

// Ledger → shard, while the ledger is reconciled

/** Asks for one page of a cell's holds. It ends with the entry of the log that has number `limit`. */
export interface ListHolds extends Envelope {
  cell: string;
  /** The place of the last holds that were read before. Null: none were. */
  after: HoldPosition | null;
  limit: number;
}

/** A hold with what its claim would have. A destroy has neither value nor subject nor source. */
export interface HeldOp extends Omit<Op, "index" | "shard" | "epoch">, AttemptId {
  lease: string;
  /** The epoch of the execution that made the hold. */
  heldEpoch: number;
  /** The shard that granted it. Absent: the one that answers (G6). */
  grantedBy?: number;
}

/** A range hold, for a ledger that has lost leases (H7). */
export interface HeldRange extends TransferRange, AttemptId {
  lease: string;
  heldEpoch: number;
  /** Whether the shard knows that the transfer was cut. */
  isCut: boolean;
  /** What the shard counted when it was prepared. */
  counted: BySide<DigestedClaims>;
}

export interface HoldPage {
  holds: HeldOp[];
  /** The range holds of the cell's transfers. Only in the first page. */
  ranges: HeldRange[];
  next: HoldPosition | null;
  /** The newest durable point of the shard. */
  point: HistoryPoint | null;
  /** The newest point of the ledger that the shard has stored. */
  seen: HistoryPoint | null;
}

// Cron → directory

/** What ledgers have seen of the directory. */
export interface ComparePoints extends Envelope {
  points: { noticedBy: string; point: HistoryPoint }[];
}
