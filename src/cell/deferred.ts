import { v7 as uuidv7 } from "uuid";
import { describeFailure, type Answer, type Refused } from "../client/answer.ts";
import type { Batch } from "../client/api-types.ts";
import type { LeaseCalls } from "./leased-transaction.ts";
import type { CellDatabase, Deferred } from "./local.ts";
import type { LeaseState } from "./remote-leases.ts";

export interface DeferredCounters {
  /** Leases whose names were given up. */
  done: number;
  /** Left for the next run, which may have more luck. */
  left: number;
  /** Left too, and the coordinator will say the same again: somebody has to look. `deferred_left` tells why. */
  refused: number;
  /** Names that are somebody else's by now, or another row's: there is nothing to give up. */
  dropped: number;
}

export const noDeferred = (): DeferredCounters => ({ done: 0, left: 0, refused: 0, dropped: 0 });

export type DeferredPorts = Pick<CellDatabase<unknown>, "listDeferred" | "replaceDeferred" | "remove">;

export interface DeferredCalls extends Pick<LeaseCalls, "commit"> {
  begin(uuid: string, batch: Batch): Promise<Answer<LeaseState>>;
}

/** What to try instead: the rest of it under a new UUID, or nothing, when nothing is left to give up. */
interface Instead {
  next: Deferred | undefined;
  dropped: number;
}

const AT_ONCE = 100;
const TRIES = 3;

/**
 * Gives up the names of rows whose deletion is saved. May run several times at once and after any crash: a lease has one UUID, its begin is
 * replayed, and the row goes only after its commit.
 */
export class DeferredLeases {
  readonly #local: DeferredPorts;
  readonly #leases: DeferredCalls;
  readonly #left: (uuid: string, why: string) => void;
  /** Left under the UUIDs that they were given here, which come last: a run looks at each lease once. */
  readonly #renamed = new Set<string>();

  constructor(local: DeferredPorts, leases: DeferredCalls, left: (uuid: string, why: string) => void) {
    this.#local = local;
    this.#leases = leases;
    this.#left = left;
  }

  /** All that are waiting, oldest first, past those that have to be left; unless the next would meet the same. */
  async runAll(): Promise<DeferredCounters> {
    const counters = noDeferred();
    for (let afterUuid = ""; ;) {
      const waiting = await this.#local.listDeferred({ afterUuid, limit: AT_ONCE });
      const last = waiting.at(-1);
      if (last === undefined) return counters;
      afterUuid = last.uuid;
      for (const deferred of waiting.filter(({ uuid }) => !this.#renamed.has(uuid))) {
        if ((await this.run(deferred, counters)) === "stop") return counters;
      }
    }
  }

  /** `stop`: the coordinator does not answer, or takes no more at the moment. */
  async run(deferred: Deferred, counters: DeferredCounters): Promise<"go_on" | "stop"> {
    let each: Deferred = deferred;
    for (let tried = 0; tried < TRIES; tried += 1) {
      const begun = await this.#leases.begin(each.uuid, each.batch);
      if (begun.kind === "ok" && begun.value !== "ROLLED_BACK") return this.#commit(each.uuid, counters);
      const instead = insteadOf(each, begun);
      if (instead === undefined) return this.#leave(each.uuid, begun, counters);
      // Another run was faster, and has given the lease another UUID or its end. What is still to do is its to do, and may be something else by now.
      if (!(await this.#local.replaceDeferred(each.uuid, instead.next))) return "go_on";
      counters.dropped += instead.dropped;
      if (instead.next === undefined) {
        counters.done += 1;
        return "go_on";
      }
      each = instead.next;
      this.#renamed.add(each.uuid);
    }
    counters.left += 1;
    this.#left(each.uuid, `what stands in its way changed ${TRIES} times`);
    return "go_on";
  }

  async #commit(uuid: string, counters: DeferredCounters): Promise<"go_on" | "stop"> {
    const answer = await this.#leases.commit(uuid);
    if (answer.kind !== "ok") return this.#leave(uuid, answer, counters);
    await this.#local.remove(uuid);
    counters.done += 1;
    return "go_on";
  }

  #leave(uuid: string, answer: Answer<LeaseState>, counters: DeferredCounters): "go_on" | "stop" {
    if (isPermanent(answer)) counters.refused += 1;
    else counters.left += 1;
    this.#left(uuid, answer.kind === "ok" ? `the lease is ${answer.value}` : describeFailure(answer));
    return isForAll(answer) ? "stop" : "go_on";
  }
}

/** Undefined: the answer leaves nothing to try, now at least. */
function insteadOf({ batch }: Deferred, begun: Answer<LeaseState>): Instead | undefined {
  // Somebody decided it otherwise, an operator perhaps: the rows are gone nevertheless.
  if (begun.kind === "ok") return { next: { uuid: uuidv7(), batch }, dropped: 0 };
  if (begun.kind === "unknown" || !begun.outcomeKnown) return undefined;
  const { code, reason, conflicts } = begun;
  if (reason === "LEASE_ROLLED_BACK" || reason === "LEASE_ID_REUSED")
    return { next: { uuid: uuidv7(), batch }, dropped: 0 };
  if (code !== "FAILED_PRECONDITION") return undefined;
  const gone = new Set(conflicts.filter(({ kind }) => kind !== "leased").map(({ index }) => index));
  if (gone.size === 0) return undefined;
  const destroys = (batch.destroys ?? []).filter((_, index) => !gone.has(index));
  return {
    next: destroys.length === 0 ? undefined : { uuid: uuidv7(), batch: { ...batch, destroys } },
    dropped: gone.size,
  };
}

/** A batch that is too large (413) is its own problem; another limit is everybody's. */
const isLimit = (answer: Refused): boolean => answer.code === "RESOURCE_EXHAUSTED" && answer.status !== 413;

const isForAll = (answer: Answer<LeaseState>): boolean =>
  answer.kind === "unknown" || (answer.kind === "refused" && isLimit(answer));

/** The same call has the same answer, until somebody does something. */
const isPermanent = (answer: Answer<LeaseState>): boolean =>
  answer.kind === "refused" &&
  answer.outcomeKnown &&
  !answer.retryable &&
  !isLimit(answer) &&
  !answer.conflicts.some(({ kind }) => kind === "leased");
