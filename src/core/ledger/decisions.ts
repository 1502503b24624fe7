import type { GroupCommit } from "../group-commit.ts";
import type { Limits } from "../limits.ts";
import type { DecideRequest, Lease } from "../messages.ts";
import type { Ports } from "../ports.ts";
import { ok, refused, type Refusal, type Result } from "../refusal.ts";
import type { Begins } from "./begins.ts";
import type { Deliveries } from "./deliveries.ts";
import type { Positions } from "./position.ts";
import type { LeaseRow, LedgerStore } from "./store.ts";

/** Commits and rollbacks: the first decision wins and is final (rule C1). Never refused for load, quota or a frozen cell (rule C6). */
export class Decisions {
  readonly #ports: Ports;
  readonly #limits: Limits;
  readonly #store: LedgerStore;
  readonly #commits: GroupCommit;
  readonly #positions: Positions;
  readonly #begins: Begins;
  readonly #deliveries: Deliveries;
  #fences: number;

  constructor(
    ports: Ports,
    limits: Limits,
    store: LedgerStore,
    commits: GroupCommit,
    positions: Positions,
    begins: Begins,
    deliveries: Deliveries,
  ) {
    this.#ports = ports;
    this.#limits = limits;
    this.#store = store;
    this.#commits = commits;
    this.#positions = positions;
    this.#begins = begins;
    this.#deliveries = deliveries;
    this.#fences = store.number("fences");
  }

  async decide(request: DecideRequest): Promise<Result<Lease>> {
    const decided = await this.#commits.submit("decide", () => this.#write(request));
    if (!decided.ok) {
      if (decided.refusal.reason !== undefined)
        this.#ports.log("decision_refused", { lease: request.lease, reason: decided.refusal.reason });
      return decided;
    }
    // The row is durable, so the shards may be told (rule C2), and the answer does not depend on whether they can be (rule C3).
    await this.#untilDeadline(this.#deliveries.deliver(request.lease));
    return ok(this.#store.leaseOf(decided.value, this.#ports.clock.now()));
  }

  /** In one transaction: reads the row as it is now, and decides it if nobody has. */
  #write(request: DecideRequest): Result<LeaseRow> {
    const row = this.#store.findWhole(request.lease);
    if (row === undefined) return this.#writeFence(request);
    if (row.state !== "GRANTED")
      return row.state === request.outcome
        ? ok(withoutBatch(row))
        : { ok: false, refusal: decidedOtherwise(row) };
    const position = this.#positions.next(this.#ports.clock.now());
    const decidedBy = request.caller.role;
    const reason = request.reason ?? null;
    this.#store.decide(request.lease, request.outcome, position, decidedBy, reason);
    this.#begins.decided();
    const decided: LeaseRow = {
      ...row,
      decided: 1,
      state: request.outcome,
      position,
      decided_by: decidedBy,
      reason,
    };
    this.#deliveries.track(decided);
    return ok(withoutBatch(decided));
  }

  /** Rollback of a lease that is not there (rule C7): a begin that is running ends refused, and one that arrives late will be. */
  #writeFence(request: DecideRequest): Result<LeaseRow> {
    if (request.outcome === "COMMITTED") return refused("NOT_FOUND", "this cell has no such lease");
    // The fence of a running begin is bounded by the begins; only those out of the blue are limited.
    if (!this.#begins.isRunning(request.lease) && this.#fences >= this.#limits.fences) {
      const detail = `the cell has ${this.#limits.fences} remembered rollbacks of leases that it never began, which is its limit`;
      return refused("RESOURCE_EXHAUSTED", detail, { reason: "TOO_MANY_FENCES", retryAfterMs: 60_000 });
    }
    const position = this.#positions.next(this.#ports.clock.now());
    const row: LeaseRow = {
      lease: request.lease,
      decided: 1,
      position,
      created_position: position,
      state: "ROLLED_BACK",
      fence: 1,
      incarnation: 0,
      counter: 0,
      epochs: null,
      payload: null,
      payload_hash: "",
      creates: 0,
      destroys: 0,
      replaces: 0,
      missing: 0,
      decided_by: request.caller.role,
      reason: request.reason ?? null,
    };
    this.#begins.fence(request.lease);
    this.#store.insert(row);
    this.#fences += 1;
    this.#store.setNumber("fences", this.#fences);
    return ok(row);
  }

  #untilDeadline(work: Promise<void>): Promise<void> {
    return new Promise((resolve, reject) => {
      const cancel = this.#ports.clock.after(this.#limits.commitDeadlineMs, resolve);
      work.then(resolve, reject).finally(cancel);
    });
  }

  /** In the transaction that prunes them. */
  pruned(fences: number): void {
    if (fences === 0) return;
    this.#fences -= fences;
    this.#store.setNumber("fences", this.#fences);
  }
}

/** What waits for the shards' answers needs not keep it in memory. */
const withoutBatch = (row: LeaseRow): LeaseRow => ({ ...row, payload: null, epochs: null });

function decidedOtherwise(row: LeaseRow): Refusal {
  return row.state === "COMMITTED"
    ? refused("FAILED_PRECONDITION", "the lease was committed, which is final", { reason: "LEASE_COMMITTED" })
        .refusal
    : refused("FAILED_PRECONDITION", "the lease was rolled back, which is final", {
        reason: "LEASE_ROLLED_BACK",
      }).refusal;
}
