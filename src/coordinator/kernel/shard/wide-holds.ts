import type {
  BucketKey,
  Decision,
  Envelope,
  HeldKey,
  Op,
  Prepare,
  PrepareAnswer,
  RefusedPrepare,
  Verdict,
} from "../messages.ts";
import type { Refusal, Result } from "../refusal.ts";
import type { EndedAs } from "./end-holds.ts";
import type { ShardAlarm } from "./hooks.ts";
import type { ClaimReads } from "./read-queue.ts";
import type { KeyRead } from "./record.ts";
import type { Claimant, ClaimRow, HoldRow, WideHold } from "./rows.ts";

/** Leases that hold something else than names. */
export interface WideHolds {
  /** How many there are. */
  readonly size: number;
  /** Those whose decisions the shard does not know. A sweep asks about them. */
  undecided(): readonly WideHold[];

  /** Whether a lease holds something else than names. Then it has no ops. */
  isWide(message: Prepare | Decision): boolean;
  /** Grants or refuses a prepare, in the current transaction. `incomplete`: claims may be missing. */
  prepare(request: Prepare, nowMs: number, incomplete: Refusal | undefined): PrepareAnswer | RefusedPrepare;
  /** Returns holds of names that are in the way of a refused prepare. Their leases may be over (B8). */
  blocking(request: Prepare): readonly HoldRow[];

  /** Applies a decision to its own hold, in the current transaction. False: it must be sent again. */
  decide(decision: Decision, nowMs: number): boolean;
  /** Ends a hold that its ledger was asked about, if it is still there, in the current transaction. */
  end(asked: WideHold, as: EndedAs, nowMs: number): void;
  /** The weight of a decision in its transaction. Undefined: a ledger has answered with it. */
  weightOf(decision?: Decision): number;
  /** Whether the shard has begun to apply the decision of a lease, which takes several transactions. */
  isUnfinished(lease: string): boolean;
  /** Goes on applying decisions. It runs before a sweep. */
  readonly alarm: ShardAlarm;

  /**
   * Returns the hold that keeps a cell from carrying out an op.
   *
   * @param isClear whether there is a claim for the op, or a place for one, apart from holds
   */
  inWay(op: Op, cell: string, claim: Claimant | undefined, isClear: boolean): InWay | undefined;
  /** Returns the hold that a key names. Undefined: it names none. Null: that hold is not there any more. */
  named(key: HeldKey): WideHold | null | undefined;

  /** Returns what the name of a claim shows, if the claim is held (R2). */
  shown(claim: ClaimRow, verdicts: ReadonlyMap<string, Verdict>): KeyRead | undefined;
  /** Carries out a read of a cell's claims, after asking what may have been decided about them. */
  readClaims<T>(cell: string, message: Envelope, read: () => Promise<Result<T>>): Promise<Result<T>>;
  /** Runs the steps of such reads. */
  readonly reads: ClaimReads;
}

/** A hold in the way of an op, and what names it besides the op's own name. */
interface InWay {
  readonly cell: string;
  readonly named: Omit<HeldKey, keyof BucketKey>;
}

/** Without a capability, all leases hold names. */
export const noWideHolds = (reads: ClaimReads): WideHolds => ({
  size: 0,
  undecided: () => [],
  isWide: () => false,
  prepare: () => {
    throw new Error("a lease holds names");
  },
  blocking: () => [],
  decide: () => true,
  end: () => {},
  weightOf: () => 0,
  isUnfinished: () => false,
  alarm: { dueMs: () => Infinity, run: async () => {} },
  inWay: () => undefined,
  named: () => undefined,
  shown: () => undefined,
  readClaims: (_, __, read) => read(),
  reads,
});
