import type { Answer } from "../client/answer.ts";
import type { CallOptions } from "../client/connection.ts";
import type { Batch, Conflict } from "../client/api-types.ts";
import type { ClientLeases, LeaseState } from "./remote-leases.ts";

/** Also: nothing is left to ask for. */
export type Begun = Answer<LeaseState> | { kind: "not_needed" };

type Placed<T> = { op: T; index: number };

/**
 * A begin, and once more without what stood in the way only because this cell's rows and claims differed before:
 *
 * - a claim to replace that is absent, of a row from before its column was claimed: its name is taken for the first time;
 * - a claim to give up that is absent, another cell's, or another row's: there is nothing to give up. Otherwise such a row could be neither renamed nor
 *   deleted. `notOwned` hears of it: it should not happen.
 *
 * A certain refusal left nothing behind, so the same UUID serves.
 */
export async function beginAdjusting(
  leases: Pick<ClientLeases, "begin">,
  uuid: string,
  batch: Batch,
  options: CallOptions,
  notOwned: (conflicts: readonly Conflict[]) => void,
): Promise<Begun> {
  const started = performance.now();
  const answer = await leases.begin(uuid, batch, options);
  if (
    answer.kind !== "refused" ||
    !answer.outcomeKnown ||
    answer.conflicts.length === 0 ||
    !answer.conflicts.every(isOfThePast)
  )
    return answer;
  const lost = answer.conflicts.filter(({ list }) => list === "destroys");
  if (lost.length > 0) notOwned(lost);
  const next = new Adjusted(batch, answer.conflicts);
  if (next.isEmpty) return { kind: "not_needed" };
  const left =
    options.deadlineMs === undefined
      ? {}
      : { deadlineMs: Math.max(1, options.deadlineMs - (performance.now() - started)) };
  const again = await leases.begin(uuid, next.batch, { ...options, ...left });
  return again.kind === "refused"
    ? { ...again, conflicts: again.conflicts.map((conflict) => next.inPlace(conflict)) }
    : again;
}

const isOfThePast = ({ list, kind }: Conflict): boolean =>
  list === "replaces"
    ? kind === "absent"
    : list === "destroys" && (kind === "absent" || kind === "not_owner" || kind === "mismatch");

const placed = <T>(ops: readonly T[]): Placed<T>[] => ops.map((op, index) => ({ op, index }));

/** A batch without what stood in the way, which knows where its ops were in the first one. */
class Adjusted {
  readonly batch: Batch;
  readonly #creates: number;
  readonly #adopted: Placed<unknown>[];
  readonly #kept: Placed<unknown>[];
  readonly #destroys: Placed<unknown>[];

  constructor(
    { creates = [], destroys = [], replaces = [], ...rest }: Batch,
    conflicts: readonly Conflict[],
  ) {
    const of = (list: Conflict["list"]): Set<number> =>
      new Set(conflicts.filter((each) => each.list === list).map(({ index }) => index));
    const [absent, lost] = [of("replaces"), of("destroys")];
    const adopted = placed(replaces).filter(({ index }) => absent.has(index));
    const kept = placed(replaces).filter(({ index }) => !absent.has(index));
    const left = placed(destroys).filter(({ index }) => !lost.has(index));
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

  /** In the place that the caller knows. */
  inPlace(conflict: Conflict): Conflict {
    const { list, index } = conflict;
    if (list === "replaces") return { ...conflict, index: this.#kept[index]?.index ?? index };
    if (list === "destroys") return { ...conflict, index: this.#destroys[index]?.index ?? index };
    const from = this.#adopted[index - this.#creates];
    return index < this.#creates || from === undefined
      ? conflict
      : { ...conflict, list: "replaces", index: from.index };
  }
}
