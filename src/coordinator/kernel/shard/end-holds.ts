import type { Decision } from "../messages.ts";
import { bucketText, type ExecutionId, type HoldRow } from "./rows.ts";
import type { ShardLog } from "./shard-log.ts";
import type { ShardStore } from "./store.ts";

/** What became of the execution of a hold. `gone`: it was never granted. */
export type EndedAs = "committed" | "rolled_back" | "gone";

/**
 * Ends holds: carries out those that are committed, drops the others, and notes what became of them (F1).
 * Runs inside a transaction.
 *
 * @param isPart whether other holds of their executions may be left
 */
export function endHolds(
  store: ShardStore,
  log: ShardLog,
  ended: readonly { hold: HoldRow; as: EndedAs }[],
  isPart: boolean,
  nowMs: number,
): void {
  const committed = ended.flatMap(({ hold, as }) => (as === "committed" ? [hold] : []));
  const changed = store.apply(committed, nowMs);
  const notes = log.notes.current;
  for (const { hold, as } of ended) {
    if (as === "rolled_back") notes.noteRolledBack(hold, isPart);
    if (as === "committed")
      notes.noteCommitted(hold, changed.get(bucketText(hold.bucket_type, hold.canonical)), isPart);
  }
  store.deleteHolds(ended.map(({ hold }) => hold));
}

/** A release without an epoch is of an attempt that was never granted. */
export function endedAs({ outcome, epoch }: Decision): EndedAs {
  if (outcome === "COMMITTED") return "committed";
  return epoch === null ? "gone" : "rolled_back";
}

/** Returns whether a decision is that of a hold. */
export function decides({ cell, lease, incarnation, counter, epoch }: Decision, hold: ExecutionId): boolean {
  return (
    hold.cell === cell &&
    hold.lease === lease &&
    hold.incarnation === incarnation &&
    hold.counter === counter &&
    (epoch === null || hold.epoch === epoch)
  );
}
