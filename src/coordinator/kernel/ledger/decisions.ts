import type { GroupCommit } from "../group-commit.ts";
import type { Limits } from "../../../common/limits.ts";
import type { DecideRequest, PlacedLease } from "../messages.ts";
import type { LedgerCounters } from "../metrics/ledger-counters.ts";
import type { Ports } from "../ports.ts";
import { ok, refused, type Refusal, type Result } from "../refusal.ts";
import type { Begins } from "./begins.ts";
import { decidedOtherwise } from "./decided-otherwise.ts";
import type { Deliveries } from "./deliveries.ts";
import { guarded, type HookLists } from "../half.ts";
import type { LedgerHooks } from "./hooks.ts";
import type { LeaseKind } from "./lease-kind.ts";
import type { Slot } from "../slot.ts";
import type { Positions } from "./position.ts";
import { plainLease, type LedgerStore } from "./store.ts";
import type { LeaseRow } from "./lease-table.ts";

/**
 * A larger operation that decides a lease, and records that itself. It waits until shards have applied the
 * decision.
 */
interface Within {
  /** The lease holds something else than names, and no other call may decide it. */
  readonly isOfKind?: true;
  /** Returns why it may not be decided now. */
  refusal?(): Refusal | undefined;
  /** Runs in the transaction of the decision (Y6). */
  write(before: LeaseRow): void;
}

/** When the alarm forgets fences, after one had no room. */
const FORGET_WITHIN_MS = 1_000;

interface Needs {
  readonly ports: Ports;
  readonly limits: Limits;
  readonly store: LedgerStore;
  readonly commits: GroupCommit;
  readonly positions: Positions;
  readonly begins: Begins;
  readonly deliveries: Deliveries;
  readonly counters: LedgerCounters;
  readonly hooks: HookLists<LedgerHooks>;
  readonly kinds: Slot<LeaseKind>;
}

/**
 * Makes commits and rollbacks. The first decision is final (C1). A decision is never refused for load, quota
 * or a frozen cell (C6). An operator's is refused if its audit entry has no room (O3).
 */
export class Decisions {
  readonly #part: Needs;
  #fences: number;

  constructor(part: Needs) {
    this.#part = part;
    this.#fences = part.store.count(2);
  }

  async decide(request: DecideRequest, within?: Within): Promise<Result<PlacedLease>> {
    const decided = await this.#part.commits.submit("decide", () => {
      const result = this.#write(request, within);
      // It says nothing about saved rows.
      if (within === undefined)
        for (const answered of this.#part.hooks.decisionAnswered) answered(request, result);
      return result;
    });
    if (!decided.ok) {
      if (decided.refusal.reason !== undefined)
        this.#part.ports.log("decision_refused", { lease: request.lease, reason: decided.refusal.reason });
      return decided;
    }
    // The decision is durable, so it may be sent to shards (C2). The caller does not wait for them (C3).
    void this.#deliver(request);
    return ok(this.#part.store.placedLeaseOf(decided.value, this.#part.ports.clock.now()));
  }

  /** No caller waits for it, so an error is logged here. The alarm delivers the decision later. */
  async #deliver({ lease, traces }: DecideRequest): Promise<void> {
    try {
      await this.#part.deliveries.deliver(lease, traces);
    } catch (error) {
      this.#part.ports.log("delivery_failed", {
        lease,
        error: error instanceof Error ? error.message : String(error),
      });
    }
  }

  /** Runs in one transaction: reads the row again, and decides it if it is undecided (C1, M1). */
  #write(request: DecideRequest, within: Within | undefined): Result<LeaseRow> {
    const row = this.#part.store.find(request.lease);
    if (row === undefined && within === undefined) return this.#writeFence(request);
    if (row === undefined) return refused("NOT_FOUND", "this cell has no lease with this id");
    if ((row.transfer !== null) !== (within?.isOfKind === true))
      return this.#part.kinds.current.decidedElsewhere;
    if (row.state !== "GRANTED")
      return row.state === request.outcome ? ok(row) : { ok: false, refusal: decidedOtherwise(row) };
    const unfit =
      within === undefined ? guarded(this.#part.hooks.guardDecision, request) : within.refusal?.();
    if (unfit !== undefined) return { ok: false, refusal: unfit };
    const now = this.#part.ports.clock.now();
    this.#part.store.times.note(now, this.#part.positions.last);
    const decided: LeaseRow = {
      ...row,
      decided: 1,
      state: request.outcome,
      position: this.#part.positions.next(now),
      decided_at_ms: now,
      ...deciderOf(request),
    };
    this.#part.store.decide(decided);
    if (within === undefined) for (const hook of this.#part.hooks.decided) hook(request, row);
    else within.write(row);
    this.#part.begins.decided();
    this.#part.deliveries.track(decided, within !== undefined);
    this.#part.counters.decided(request);
    return ok(decided);
  }

  /**
   * Remembers the rollback of a lease that has no row (C7). A running begin of the lease ends with a refusal,
   * and so does one that arrives later.
   */
  #writeFence(request: DecideRequest): Result<LeaseRow> {
    if (request.outcome === "COMMITTED")
      return refused("NOT_FOUND", "this cell has no lease with this id, so there is nothing to commit");
    // A fence of a running begin is an outcome like any other: the limit on running begins limits it too.
    // Only fences without a running begin are counted and forgotten early (C7).
    const isCounted = !this.#part.begins.isRunning(request.lease);
    if (isCounted && this.#fences >= this.#part.limits.fences) {
      const detail =
        `the cell has reached its limit of ${this.#part.limits.fences} remembered rollbacks of leases that ` +
        `it never began; each is forgotten after ${this.#part.limits.lateBeginS} s`;
      // The alarm forgets old fences, also if no cron runs.
      this.#part.deliveries.wakeWithin(FORGET_WITHIN_MS);
      return refused("RESOURCE_EXHAUSTED", detail, { reason: "TOO_MANY_FENCES", retryAfterMs: 60_000 });
    }
    const full = guarded(this.#part.hooks.guardDecision, request);
    if (full !== undefined) return { ok: false, refusal: full };
    const now = this.#part.ports.clock.now();
    this.#part.store.times.note(now, this.#part.positions.last);
    const position = this.#part.positions.next(now);
    const row: LeaseRow = {
      lease: request.lease,
      decided: isCounted ? 2 : 1,
      position,
      created_position: position,
      created_at_ms: now,
      decided_at_ms: now,
      state: "ROLLED_BACK",
      fence: 1,
      incarnation: 0,
      counter: 0,
      epochs: null,
      shards: 0,
      payload: null,
      payload_hash: "",
      creates: 0,
      destroys: 0,
      replaces: 0,
      missing: 0,
      ...deciderOf(request),
      ...plainLease,
    };
    this.#part.begins.fence(request.lease);
    this.#part.store.insert(row);
    if (isCounted) this.#fences += 1;
    // It is forgotten like any outcome, so it must be examined.
    else this.#part.deliveries.noteChange(position);
    for (const hook of this.#part.hooks.decided) hook(request, null);
    this.#part.counters.fenced();
    return ok(row);
  }

  /** Must be called in the transaction that deletes the fences. */
  forgotten(fences: number): void {
    this.#fences -= fences;
  }
}

const deciderOf = ({
  caller: { role, keyId },
  reason,
}: DecideRequest): Pick<LeaseRow, "decided_by" | "decided_by_key" | "reason"> => ({
  decided_by: role,
  decided_by_key: role === "operator" ? keyId : null,
  reason: reason ?? null,
});
