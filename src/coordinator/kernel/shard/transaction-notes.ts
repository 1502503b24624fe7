import type { BucketKey } from "../messages.ts";
import type { ChangedClaimRow, ExecutionId, HoldRow } from "./rows.ts";

/** Identifies the execution that a note is about. */
export type Execution = Pick<HoldRow, "cell" | "lease"> & Pick<ExecutionId, "epoch" | "granted_by">;

/**
 * Collects what the current transaction changes, for the texts of its rows in the log. Without a capability
 * for that, the texts are empty.
 */
export interface TransactionNotes {
  readonly isEmpty: boolean;
  /** Whether the grant of an execution was noted already. */
  isTold(execution: Pick<Execution, "epoch" | "granted_by">): boolean;
  /** The lease of a hold is granted. */
  noteGranted(hold: HoldRow): void;
  /**
   * The lease of a hold, which was granted, is rolled back.
   *
   * @param isPart whether other holds of the execution may be left
   */
  noteRolledBack(hold: HoldRow, isPart: boolean): void;
  /**
   * A hold was carried out.
   *
   * @param claim the claim that a destroy has ended, or that a replace has changed
   * @param isPart whether other holds of the execution may be left
   */
  noteCommitted(hold: HoldRow, claim: ChangedClaimRow | undefined, isPart: boolean): void;
  /** An execution has given a claim of another cell to its own. */
  noteMoved(execution: Execution, from: string, claim: ChangedClaimRow): void;
  /** Ends the collecting. Returns a text for each row: one, unless it would be too long, or none. */
  take(): string[];
  /**
   * Returns a text without the details of a name, except for its claim with this epoch, which is the current
   * one (K5), and how many changes have lost theirs.
   */
  withoutName(
    text: string,
    key: BucketKey,
    currentEpoch: number | undefined,
  ): { text: string; erased: number };
}

const nothing = (): void => {};

export const noNotes: TransactionNotes = {
  isEmpty: true,
  isTold: () => true,
  noteGranted: nothing,
  noteRolledBack: nothing,
  noteCommitted: nothing,
  noteMoved: nothing,
  take: () => [],
  withoutName: (text) => ({ text, erased: 0 }),
};
