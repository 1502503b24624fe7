import { v7 as uuidv7 } from "uuid";
import { describeFailure, type Answer, type Refused } from "../client/answer.ts";
import type { Batch } from "../client/api-types.ts";
import type { LeaseCalls } from "./leased-transaction.ts";
import type { CellDatabase, Deferred } from "./local.ts";
import type { LeaseState } from "./remote-leases.ts";

export interface DeferredCounters {
  /** Leases that released their names. */
  done: number;
  /** Leases postponed to the next run, because of a temporary failure. */
  postponed: number;
  /** Leases that the coordinator refuses permanently. They need a person. `release_postponed` says why. */
  refused: number;
  /** Names that another cell or another row holds by now, so that there is nothing to release. */
  dropped: number;
}

export const noDeferred = (): DeferredCounters => ({ done: 0, postponed: 0, refused: 0, dropped: 0 });

export type DeferredPorts = Pick<CellDatabase<unknown>, "listDeferred" | "replaceDeferred" | "remove">;

export interface DeferredCalls extends Pick<LeaseCalls, "commit"> {
  begin(uuid: string, batch: Batch): Promise<Answer<LeaseState>>;
}

/** The remaining batch under a new UUID. `next` is undefined if nothing is left to release. */
interface Replacement {
  next: Deferred | undefined;
  dropped: number;
}

const PAGE_SIZE = 100;
const MAX_ATTEMPTS = 3;

/**
 * Releases the names of rows whose deletion is saved. Concurrent runs and crashes are safe: a lease keeps its
 * UUID, its begin is idempotent, and its row is removed only after the commit.
 */
export class DeferredLeases {
  readonly #local: DeferredPorts;
  readonly #leases: DeferredCalls;
  readonly #report: (uuid: string, error: string) => void;
  /** UUIDs assigned by this run. They sort last, and are skipped so that a run tries each lease once. */
  readonly #renamed = new Set<string>();

  constructor(local: DeferredPorts, leases: DeferredCalls, report: (uuid: string, error: string) => void) {
    this.#local = local;
    this.#leases = leases;
    this.#report = report;
  }

  /**
   * Runs all deferred leases, oldest first. Continues after a postponed lease, unless the next would
   * fail too.
   */
  async runAll(): Promise<DeferredCounters> {
    const counters = noDeferred();
    for (let afterUuid = ""; ;) {
      const waiting = await this.#local.listDeferred({ afterUuid, limit: PAGE_SIZE });
      const last = waiting.at(-1);
      if (last === undefined) return counters;
      afterUuid = last.uuid;
      for (const deferred of waiting.filter(({ uuid }) => !this.#renamed.has(uuid))) {
        if ((await this.run(deferred, counters)) === "stop") return counters;
      }
    }
  }

  /** `stop`: the coordinator does not answer, or is over a limit, so further leases would fail too. */
  async run(deferred: Deferred, counters: DeferredCounters): Promise<"continue" | "stop"> {
    let each: Deferred = deferred;
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
      const begun = await this.#leases.begin(each.uuid, each.batch);
      if (begun.kind === "ok" && begun.value !== "ROLLED_BACK") return this.#commit(each.uuid, counters);
      const replacement = replacementFor(each, begun);
      if (replacement === undefined) return this.#postpone(each.uuid, begun, counters);
      // Another run has renamed or finished the lease, and handles the rest.
      if (!(await this.#local.replaceDeferred(each.uuid, replacement.next))) return "continue";
      counters.dropped += replacement.dropped;
      if (replacement.next === undefined) {
        counters.done += 1;
        return "continue";
      }
      each = replacement.next;
      this.#renamed.add(each.uuid);
    }
    counters.postponed += 1;
    this.#report(each.uuid, `its conflicts changed ${MAX_ATTEMPTS} times`);
    return "continue";
  }

  async #commit(uuid: string, counters: DeferredCounters): Promise<"continue" | "stop"> {
    const answer = await this.#leases.commit(uuid);
    if (answer.kind !== "ok") return this.#postpone(uuid, answer, counters);
    await this.#local.remove(uuid);
    counters.done += 1;
    return "continue";
  }

  #postpone(uuid: string, answer: Answer<LeaseState>, counters: DeferredCounters): "continue" | "stop" {
    if (isPermanent(answer)) counters.refused += 1;
    else counters.postponed += 1;
    this.#report(uuid, answer.kind === "ok" ? `the lease is ${answer.value}` : describeFailure(answer));
    return isForAll(answer) ? "stop" : "continue";
  }
}

/** Undefined if there is nothing else to try now. */
function replacementFor({ batch }: Deferred, begun: Answer<LeaseState>): Replacement | undefined {
  // Somebody, perhaps an operator, rolled the lease back. The rows are deleted nevertheless, so it is begun
  // again.
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

/** A batch that is too large (413) concerns only its lease. Any other limit concerns all leases. */
const isLimit = (answer: Refused): boolean => answer.code === "RESOURCE_EXHAUSTED" && answer.status !== 413;

const isForAll = (answer: Answer<LeaseState>): boolean =>
  answer.kind === "unknown" || (answer.kind === "refused" && isLimit(answer));

/** Whether a retry would get the same answer. */
const isPermanent = (answer: Answer<LeaseState>): boolean =>
  answer.kind === "refused" &&
  answer.outcomeKnown &&
  !answer.retryable &&
  !isLimit(answer) &&
  !answer.conflicts.some(({ kind }) => kind === "leased");
