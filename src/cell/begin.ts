import type { BeginCallOptions } from "../client/lease-answers.ts";
import type { Batch, Conflict } from "../client/api-types.ts";
import type { ClientLeases, LeaseAnswer } from "./remote-leases.ts";

/** `not_needed`: no ops are left. */
export type Begun = LeaseAnswer | { kind: "not_needed" };

type IndexedOp<T> = { op: T; index: number };

/**
 * Begins a lease. If all conflicts come from drift that already existed, it adjusts the batch and begins once
 * more:
 *
 * - A replace of an absent claim becomes a create: the row is older than the declaration of its column.
 * - A destroy of a claim that is absent, or not this row's, is dropped. Otherwise the row could not be
 *   renamed or deleted. `notOwned` is called, because this should not happen.
 *
 * A certain refusal leaves nothing behind, so the same UUID can be used again.
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
    !answer.conflicts.every(isEarlierDrift)
  )
    return answer;
  const notOwnedConflicts = answer.conflicts.filter(({ list }) => list === "destroys");
  if (notOwnedConflicts.length > 0) notOwned(notOwnedConflicts);
  const next = new AdjustedBatch(batch, answer.conflicts);
  if (next.isEmpty) return { kind: "not_needed" };
  const elapsedMs = performance.now() - started;
  const { deadlineMs, waitMs = 0 } = options;
  // The time for the wait comes on top of the deadline.
  const waitedMs = Math.min(elapsedMs, waitMs);
  const left = {
    ...(deadlineMs === undefined ? {} : { deadlineMs: Math.max(1, deadlineMs - (elapsedMs - waitedMs)) }),
    ...(waitMs === 0 ? {} : { waitMs: waitMs - waitedMs }),
  };
  const again = await leases.begin(uuid, next.batch, { ...options, ...left });
  return again.kind === "refused"
    ? { ...again, conflicts: again.conflicts.map((conflict) => next.atOriginalIndex(conflict)) }
    : again;
}

const isEarlierDrift = ({ list, kind }: Conflict): boolean =>
  list === "replaces"
    ? kind === "absent"
    : list === "destroys" && (kind === "absent" || kind === "not_owner" || kind === "mismatch");

const indexed = <T>(ops: readonly T[]): IndexedOp<T>[] => ops.map((op, index) => ({ op, index }));

/** A batch without the conflicting ops, which remembers where the others were in the first one. */
class AdjustedBatch {
  readonly batch: Batch;
  readonly #creates: number;
  readonly #adopted: IndexedOp<unknown>[];
  readonly #kept: IndexedOp<unknown>[];
  readonly #destroys: IndexedOp<unknown>[];

  constructor(
    { creates = [], destroys = [], replaces = [], ...rest }: Batch,
    conflicts: readonly Conflict[],
  ) {
    const of = (list: Conflict["list"]): Set<number> =>
      new Set(conflicts.filter((each) => each.list === list).map(({ index }) => index));
    const [absent, notOwnedConflicts] = [of("replaces"), of("destroys")];
    const adopted = indexed(replaces).filter(({ index }) => absent.has(index));
    const kept = indexed(replaces).filter(({ index }) => !absent.has(index));
    const left = indexed(destroys).filter(({ index }) => !notOwnedConflicts.has(index));
    this.#creates = creates.length;
    this.#adopted = adopted;
    this.#kept = kept;
    this.#destroys = left;
    const ops = {
      creates: [...creates, ...adopted.map(({ op }) => op)],
      destroys: left.map(({ op }) => op),
      replaces: kept.map(({ op }) => op),
    };
    this.batch = { ...rest, ...ops };
  }

  get isEmpty(): boolean {
    const { creates = [], destroys = [], replaces = [] } = this.batch;
    return creates.length + destroys.length + replaces.length === 0;
  }

  /** The conflict with its index in the caller's batch. */
  atOriginalIndex(conflict: Conflict): Conflict {
    const { list, index } = conflict;
    if (list === "replaces") return { ...conflict, index: this.#kept[index]?.index ?? index };
    if (list === "destroys") return { ...conflict, index: this.#destroys[index]?.index ?? index };
    const from = this.#adopted[index - this.#creates];
    return index < this.#creates || from === undefined
      ? conflict
      : { ...conflict, list: "replaces", index: from.index };
  }
}
