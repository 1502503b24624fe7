import type { Envelope, OperatorCall } from "../messages.ts";
import type { Placement } from "../placement.ts";

// The messages with which a deployment gets more shards while it runs (G1).

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
  /** When the cut was ordered. Null: it was not. */
  cutAtMs: number | null;
  /** The directory's position of the last change. A copy in D1 with a larger one shows a loss (G2). */
  position: number;
}

/** Lets a directory that has an older growth than D1 notice that it went back (G2). */
interface CopiedGrowth {
  /** The position of the growth in D1, read before this message was sent. 0: D1 has none. */
  growthCopiedAt: number;
}

/** Asks for the growth that runs. */
export interface AskGrowth extends Envelope, CopiedGrowth {}

export interface StartGrowth extends OperatorCall, CopiedGrowth {
  /** The number of shards that is wanted. */
  to: number;
}

/** Orders the cut, or aborts a growth that was not cut. */
export interface ChangeGrowth extends OperatorCall, CopiedGrowth {
  id: string;
}

/** Says that D1 has the growth that is to be cut. */
export interface ConfirmCut extends Envelope, CopiedGrowth {
  id: string;
}

/** Says that every shard of before has handed over and deleted what has moved. */
export interface FinishGrowth extends Envelope {
  id: string;
}

/** The directory's answer to an object that confirms its placement. */
export interface Confirmed {
  /** The placement that is in force. */
  placement: Placement;
  /** The growth that runs. Null: none. */
  growth: Growth | null;
}
