import { unknown, unread, type Answer } from "./answer.ts";
import type { Batch, Lease, Operations } from "./api-types.ts";
import type { BeginLimiter } from "./begin-limiter.ts";
import { invalid, noCell, type Caller, type Input } from "./caller.ts";
import type { CallOptions } from "./connection.ts";
import type { LedgerHistory } from "./ledger-history.ts";
import type { ShardPositions } from "./routing.ts";

/** A lease, as a begin or a decision answers it. */
export interface PlacedLease extends Lease {
  /**
   * Positions of the lease's shards, by the number of the shard, from which on `client.routing` shows the
   * lease. Undefined once the lease was decided some time ago.
   */
  positions?: ShardPositions | undefined;
}

/** The options of a begin, besides its id. */
export interface BeginCallOptions extends CallOptions {
  /**
   * How long the begin may wait for names that are leased, instead of failing at once with
   * `ClaimLeasedError`: not at all by default, and at most the coordinator's limit, 30 s by default. Begins
   * that wait for a name get it in the order in which they came. The call may take longer than `deadlineMs`
   * by this time. If a third of the client's begins (`begins.max`) wait already, the begin doesn't wait.
   */
  waitMs?: number | undefined;
}

type LeaseAnswer = Operations["beginLease"]["answer"];

type LeaseOperation = "beginLease" | "commitLease" | "rollbackLease" | "renewLease" | "getLease";

/**
 * The calls about one lease, with their outcomes as values. `Leases` throws the failures among them. The
 * transactions of a cell use the values: they must not treat an unknown outcome as a refusal (M2).
 */
export class LeaseAnswers {
  readonly #caller: Caller;
  readonly #beginLimiter: BeginLimiter;
  readonly #cell: string | undefined;
  readonly #history: LedgerHistory;

  constructor(caller: Caller, beginLimiter: BeginLimiter, cell: string | undefined, history: LedgerHistory) {
    this.#caller = caller;
    this.#beginLimiter = beginLimiter;
    this.#history = history;
    this.#cell = cell;
  }

  async begin(
    uuid: string,
    { wait_ms: inBatch = 0, ...batch }: Batch,
    { waitMs = inBatch, ...options }: BeginCallOptions,
  ): Promise<Answer<PlacedLease>> {
    if (!(waitMs >= 0)) return invalid("waitMs", "must be 0 or more");
    const begin = (mayWait: boolean): Promise<Answer<LeaseAnswer>> => {
      const waits = waitMs > 0 && mayWait;
      // The coordinator takes whole milliseconds.
      const body = waits ? { ...batch, wait_ms: Math.ceil(waitMs) } : batch;
      return this.#call("beginLease", uuid, { ...options, body, extraMs: waits ? waitMs : 0 });
    };
    const { deadlineMs = this.#caller.connection.deadlineMs } = options;
    return leaseOf(await this.#beginLimiter.run(begin, deadlineMs + waitMs, waitMs > 0));
  }

  async commit(uuid: string, options: CallOptions, reason?: string): Promise<Answer<PlacedLease>> {
    return leaseOf(await this.#call("commitLease", uuid, { ...options, ...bodyOf(reason) }));
  }

  async rollback(uuid: string, options: CallOptions, reason?: string): Promise<Answer<PlacedLease>> {
    return leaseOf(await this.#call("rollbackLease", uuid, { ...options, ...bodyOf(reason) }));
  }

  async renew(uuid: string, reason: string, options: CallOptions = {}): Promise<Answer<Lease>> {
    return leaseOf(await this.#call("renewLease", uuid, { ...options, body: { reason } }));
  }

  async get(uuid: string, options: CallOptions = {}): Promise<Answer<Lease>> {
    return leaseOf(await this.#call("getLease", uuid, options), unread);
  }

  async #call<Id extends LeaseOperation>(
    operation: Id,
    uuid: string,
    input: Input<Id>,
  ): Promise<Answer<LeaseAnswer>> {
    if (this.#cell === undefined) return noCell;
    const params = { cell: this.#cell, uuid };
    return this.#caller.call(operation, { ...input, params, history: this.#history });
  }
}

const bodyOf = (reason: string | undefined): { body?: { reason: string } } =>
  reason === undefined ? {} : { body: { reason } };

const STATES: ReadonlySet<string> = new Set([
  "GRANTED",
  "COMMITTED",
  "ROLLED_BACK",
] satisfies Lease["state"][]);

/** A newer coordinator may have a state that this client does not know. The outcome is unknown then. */
function leaseOf(answer: Answer<LeaseAnswer>, failed = unknown): Answer<PlacedLease> {
  if (answer.kind !== "ok") return answer;
  const { lease, positions } = answer.value;
  return STATES.has(lease.state)
    ? { kind: "ok", value: positions === undefined ? lease : { ...lease, positions } }
    : failed(`the lease has a state that this client does not know: ${lease.state}`);
}
