import type { BeginCallOptions } from "../client/leases.ts";
import type { Batch, Conflict } from "../client/api-types.ts";
import type { ClientLeases, LeaseAnswer } from "./remote-leases.ts";

/** `not_needed`: no ops are left. */
export type Begun = LeaseAnswer | { kind: "not_needed" };

/**
 * Begins a lease. If all conflicts are destroys of claims that are not this row's, it begins once more
 * without them. Otherwise the row could not be renamed or deleted. `notOwned` is called, because this should
 * not happen. A certain refusal leaves nothing behind, so the same UUID can be used again.
 */
export async function beginAdjusting(
  leases: Pick<ClientLeases, "begin">,
  uuid: string,
  batch: Batch,
  options: BeginCallOptions,
  notOwned: (conflicts: readonly Conflict[]) => void,
): Promise<Begun> {
  const started = performance.now();
  const answer = await leases.begin(uuid, batch, options);
  if (
    answer.kind !== "refused" ||
    !answer.outcomeKnown ||
    answer.conflicts.length === 0 ||
    !answer.conflicts.every(isOfAnotherRow)
  )
    return answer;
  notOwned(answer.conflicts);
  const { creates = [], destroys = [], replaces = [] } = batch;
  const dropped = new Set(answer.conflicts.map(({ index }) => index));
  const kept = [...destroys.keys()].filter((index) => !dropped.has(index));
  if (creates.length + kept.length + replaces.length === 0) return { kind: "not_needed" };
  const next = { ...batch, destroys: destroys.filter((_, index) => !dropped.has(index)) };
  const elapsedMs = performance.now() - started;
  const { deadlineMs, waitMs = 0 } = options;
  // The time for the wait comes on top of the deadline.
  const waitedMs = Math.min(elapsedMs, waitMs);
  const left = {
    ...(deadlineMs === undefined ? {} : { deadlineMs: Math.max(1, deadlineMs - (elapsedMs - waitedMs)) }),
    ...(waitMs === 0 ? {} : { waitMs: waitMs - waitedMs }),
  };
  const again = await leases.begin(uuid, next, { ...options, ...left });
  if (again.kind !== "refused") return again;
  const atOriginalIndex = (conflict: Conflict): Conflict =>
    conflict.list === "destroys" ? { ...conflict, index: kept[conflict.index] ?? conflict.index } : conflict;
  return { ...again, conflicts: again.conflicts.map(atOriginalIndex) };
}

const isOfAnotherRow = ({ list, kind }: Conflict): boolean =>
  list === "destroys" && (kind === "not_owner" || kind === "mismatch");
