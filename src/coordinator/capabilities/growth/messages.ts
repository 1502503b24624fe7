import type { Envelope, HistoryPoint, OperatorCall } from "../../kernel/messages.ts";
import type { ClaimRow, HoldRow } from "../../kernel/shard/rows.ts";

declare module "../../kernel/refusal.ts" {
  interface Reasons {
    GROWTH_UNKNOWN: true;
    GROWTH_CUT: true;
    GROWTH_NOT_COPIED: true;
    GROWTH_SHARD_UNAVAILABLE: true;
  }
}

declare module "../../kernel/messages.ts" {
  interface ShardWork {
    /** What the new shard that asks may lack (G5). Absent: it was handed nothing over, or none asks. */
    handedOver?: HandedOver;
  }
  interface PingShard {
    /** The new shard that asks whether the names that it lacks were handed over (G5). */
    newShard?: number;
  }
}

// The messages with which a deployment gets more shards while it runs (G1 to G10).

/**
 * `copying`: shards copy the names that will move, and an operator can abort. `cutting`: the growth can't be
 * aborted any more, and D1 gets a copy of it. `cut`: the new placement is in force.
 */
type GrowthPhase = "copying" | "cutting" | "cut";

/** A growth that runs, as the directory stores it, and D1 has a copy. */
export interface Growth {
  id: string;
  /** The number of shards before. */
  from: number;
  /** The number of shards afterwards. */
  to: number;
  phase: GrowthPhase;
  startedAtMs: number;
  /** The key of the operator who started it. */
  startedBy: string;
  /** When the cut was ordered. Null: it was not. */
  cutAtMs: number | null;
  /** The directory's position of the last change. A copy in D1 with a larger one shows a loss (G2). */
  position: number;
}

/** A growth as D1 has it: the one that runs, or the last one. */
export interface GrowthCopy extends Growth {
  /** True if it was aborted. Shards are told only after D1 has this, so it never runs again (G2). */
  isAborted?: true;
  /** True if all shards were told of the abort and have dropped what it left. */
  isDropped?: true;
}

/** Lets a directory that has an older growth than D1 notice that it went back (G2). */
export interface CopiedGrowth {
  /** The position of the growth in D1, read before this message was sent. 0: D1 has none. */
  growthCopiedAt: number;
}

/** Asks for the growth that runs. */
export interface AskGrowth extends Envelope, CopiedGrowth {}

export interface StartGrowth extends OperatorCall, CopiedGrowth {
  /** The number of shards that is wanted. */
  to: number;
}

/** Aborts a growth that was not cut. */
export interface AbortGrowth extends OperatorCall, CopiedGrowth {
  id: string;
}

/** Orders the cut. */
export interface CutGrowth extends OperatorCall, CopiedGrowth {
  id: string;
  /** What the shards of before have said, each of which must have copied its names. */
  sources: readonly GrowthProgress[];
}

/** Says that D1 has the growth that is to be cut. */
export interface ConfirmCut extends Envelope, CopiedGrowth {
  id: string;
}

/** Says that every shard of before has handed over and deleted what has moved. */
export interface FinishGrowth extends Envelope {
  id: string;
}

/**
 * What a shard has still to do for a growth. `copying`: rows are left. `copied`: all rows were sent once.
 * `pushing`: it has stopped to serve what moves, and sends the rest. `cleaning`: the new shards serve what
 * has moved, and it deletes its rows. `done`: nothing.
 */
type SourceState = "none" | "copying" | "copied" | "pushing" | "cleaning" | "done";

/** How far a shard is that gives names away. */
export interface GrowthProgress {
  shard: number;
  /** The growth. Null: this shard takes part in none. */
  growth: string | null;
  state: SourceState;
  /** The names that were sent in the first pass. */
  copied: number;
  /** The names that have changed since they were sent. */
  waiting: number;
  /** The names that were deleted here. */
  cleaned: number;
  /** What must end before the cut: a transfer that holds claims of the shard, or its reconciliation. */
  waitsFor: "transfer" | "reconciliation" | null;
}

/** The changes of one shard that may wait for the cut. Their names are unavailable until they are sent. */
export const MAX_WAITING = 1_000;

/** Whether a shard has said that the cut would make few of its names unavailable, and for a moment only. */
export const hasCopied = ({ id }: Growth, { growth, state, waiting, waitsFor }: GrowthProgress): boolean =>
  growth === id && state === "copied" && waiting <= MAX_WAITING && waitsFor === null;

/** A growth that was aborted, which is final. A shard drops what it has of it. */
export interface AbortedGrowth extends Pick<Growth, "id" | "position"> {
  phase: "aborted";
}

/** A growth whose shards are done, after every ledger has told what it has seen of them (G7). */
export interface ConcludedGrowth extends Omit<Growth, "phase"> {
  phase: "concluded";
}

/** A point of a shard that the ledger of a cell has seen. */
export interface ShardSighting {
  cell: string;
  point: HistoryPoint;
}

/** Asks a shard for some work on a growth. */
export interface GrowthStep extends Envelope {
  growth: Growth | AbortedGrowth | ConcludedGrowth;
  /** What ledgers have seen of the shard, which it checks before it does anything (H4). */
  sightings?: ShardSighting[];
  /** The most rows to read or to delete. */
  rows: number;
}

/** All that is stored about a name. Null: there is no such row. */
export interface MovedName {
  type: number;
  canonical: string;
  claim: ClaimRow | null;
  hold: HoldRow | null;
}

/** What a new shard must store that has lost what this shard has handed over. */
export interface HandedOver {
  /** The newest point of this shard. Null before its first change. */
  point: HistoryPoint | null;
  /** The newest points of ledgers that this shard has stored, by their cells (H3). */
  ledgers: Record<string, HistoryPoint>;
}

/** Shard → shard: names that move, each with all that is stored about it. */
export interface Receive extends Envelope {
  growth: Pick<Growth, "id" | "from" | "to" | "position">;
  source: number;
  /** Identifies the copy. A source that begins again uses another one. */
  copy: string;
  /** The number of messages with names of this copy that the receiver has confirmed. */
  confirmed: number;
  /** The point of the source that the names were read at. Null before its first change. */
  point: HistoryPoint | null;
  /** The point of the source that the receiver has told, and the source has checked (H5). */
  checked: HistoryPoint | null;
  names: MovedName[];
  /** With the last message: the newest points of ledgers that the source has stored, by their cells (H3). */
  ledgers: Record<string, HistoryPoint>;
  /** True if the receiver has all names by now, and the source serves none of them any more. */
  isComplete: boolean;
  /** Whether the source is reconciling after a loss, so that names may be missing (H6). */
  isReconciling: boolean;
}

/**
 * `received`: it is stored. `active`: the receiver serves what the source had, and needs nothing more.
 * `wiping`: rows of an earlier copy are being deleted; send it again. `unchecked`: the source must check the
 * point first. `unknown`: the receiver lacks something of this copy, so the source must begin again.
 */
type ReceivedState = "received" | "active" | "wiping" | "unchecked" | "unknown";

export interface Received {
  state: ReceivedState;
  /** The newest durable point of the receiver. */
  point: HistoryPoint | null;
  /** The newest point of the source that the receiver has stored, for the source to check (H4). */
  seen: HistoryPoint | null;
}
