import { v7 as uuidv7 } from "uuid";
import { unknown, unread, type Answer, type Refused } from "./answer.ts";
import type { Batch, Lease, Operations, StaleLease } from "./api-types.ts";
import { MAX_TIMER_MS } from "./attempt-abort.ts";
import type { BeginLimiter } from "./begin-limiter.ts";
import { invalid, noCell, requireCell, type Caller, type Input } from "./caller.ts";
import type { CallOptions } from "./connection.ts";
import { errorOf, valueOf } from "./errors.ts";
import type { LedgerHistory } from "./ledger-history.ts";
import { listing, pagesOf, type Page, type Pages } from "./pages.ts";
import type { ShardPositions } from "./routing.ts";

export interface RenewingOptions {
  /** What the cell does, for operators. */
  reason: string | (() => string);
  /** The pause between two renewals: 2 min by default. */
  everyMs?: number | undefined;
}

const EVERY_MS = 120_000;

/** Renews until the work ends, or until further renewals would be in vain. */
export async function whileRenewing<T>(
  renew: (reason: string) => Promise<Answer<unknown>>,
  { reason, everyMs = EVERY_MS }: RenewingOptions,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const inVain = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let hasEnded = false;
  const renewLater = (): void => {
    timer = setTimeout(() => void renewNow(), Math.min(MAX_TIMER_MS, everyMs));
  };
  // Nobody waits for it, so whatever is thrown goes to the work.
  const renewNow = async (): Promise<void> => {
    try {
      const answer = await renew(typeof reason === "string" ? reason : reason());
      if (hasEnded || isCommitted(answer)) return;
      if (endsWork(answer)) inVain.abort(errorOf(answer));
      else renewLater();
    } catch (error) {
      inVain.abort(error);
    }
  };
  renewLater();
  try {
    return await work(inVain.signal);
  } finally {
    hasEnded = true;
    clearTimeout(timer);
  }
}

/** What the work has saved stays, so it may go on, but a decision is final. */
const isCommitted = (answer: Answer<unknown>): boolean =>
  answer.kind === "refused" && answer.reason === "LEASE_COMMITTED";

/**
 * Whether the lease is lost, or the reason is not valid. After any other refusal, and an unknown outcome, the
 * next renewal may succeed: the key may be replaced, or the ledger reconciled.
 */
const endsWork = (answer: Answer<unknown>): answer is Refused =>
  answer.kind === "refused" &&
  (answer.reason === "LEASE_ROLLED_BACK" ||
    (answer.code === "NOT_FOUND" && answer.reason === undefined) ||
    answer.code === "INVALID_ARGUMENT");

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
class LeaseAnswers {
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

export interface BeginOptions extends BeginCallOptions {
  /**
   * The id of the lease: a new UUIDv7 by default. Give the same id to repeat a begin whose outcome is
   * unknown.
   */
  uuid?: string | undefined;
}

export interface DecideOptions extends CallOptions {
  /** Required for operators, and refused for cells. It is stored with the decision. */
  reason?: string | undefined;
}

export interface ListLeasesOptions extends CallOptions {
  /** Lists only leases that were granted at this time or later. */
  createdAfter?: Date | undefined;
  pageSize?: number | undefined;
  /** The `nextPageToken` of an earlier page of the same listing. */
  pageToken?: string | undefined;
}

export interface ListStaleLeasesOptions extends CallOptions {
  /** The least time since the grant or last renewal, in seconds: 600 by default. */
  olderThanS?: number | undefined;
  cell?: string | undefined;
  pageSize?: number | undefined;
  pageToken?: string | undefined;
}

/** A page of stale leases. */
export interface StalePage extends Page<StaleLease> {
  /** The listing has every lease that was granted before this time. Null: some cell was never read. */
  lastPulledAt: string | null;
}

/**
 * The leases of one cell. Every call is safe to repeat. The client repeats it while its outcome is unknown
 * and time is left.
 */
export class Leases {
  /** The same calls with their outcomes as values, for `leasehold/cell`. ¶ @internal */
  readonly answers: LeaseAnswers;
  readonly #caller: Caller;
  readonly #cell: string | undefined;
  readonly #history: LedgerHistory;

  constructor(caller: Caller, beginLimiter: BeginLimiter, cell: string | undefined, history: LedgerHistory) {
    this.#caller = caller;
    this.answers = new LeaseAnswers(caller, beginLimiter, cell, history);
    this.#cell = cell;
    this.#history = history;
  }

  /**
   * Takes a temporary lock on all names of the batch, or on none. Resolves with the lease in the state
   * GRANTED, or COMMITTED if this UUID was begun and committed before. After an error with `outcomeKnown:
   * false`, repeat it with the same UUID, or close the lease with `rollback`.
   *
   * @example
   * ```ts
   * // Waits for up to 10 s while other leases have the names.
   * const lease = await client.leases.begin(batch, { waitMs: 10_000 });
   * ```
   */
  async begin(batch: Batch, { uuid = uuidv7(), ...options }: BeginOptions = {}): Promise<PlacedLease> {
    return valueOf(await this.answers.begin(uuid, batch, options), uuid);
  }

  /** Makes the batch permanent. The limit on begins and the circuit breaker never delay it. */
  async commit(uuid: string, { reason, ...options }: DecideOptions = {}): Promise<PlacedLease> {
    return valueOf(await this.answers.commit(uuid, options, reason), uuid);
  }

  /**
   * Releases every name of the batch, also when the outcome of its begin is unknown. The limit on begins and
   * the circuit breaker never delay it.
   */
  async rollback(uuid: string, { reason, ...options }: DecideOptions = {}): Promise<PlacedLease> {
    return valueOf(await this.answers.rollback(uuid, options, reason), uuid);
  }

  /**
   * Reads a lease: with its batch while it is granted, and its decision for a day afterwards. Throws
   * `NotFoundError`.
   */
  async get(uuid: string, options: CallOptions = {}): Promise<Lease> {
    return valueOf(await this.answers.get(uuid, options), uuid);
  }

  /**
   * Says that the cell still works on a lease, and why: the time after which the lease is stale counts anew
   * (C8). Nothing else changes. Throws `FailedPreconditionError` if the lease is decided.
   */
  async renew(uuid: string, reason: string, options: CallOptions = {}): Promise<Lease> {
    return valueOf(await this.answers.renew(uuid, reason, options), uuid);
  }

  /**
   * Renews a lease every two minutes while work goes on that takes longer than reconciliation waits.
   *
   * @param uuid the lease
   * @param options `reason` tells operators what the cell does; a function is called for each renewal.
   *   `everyMs` must be well below the `staleMs` of the cell's reconciliation (10 min)
   * @param work gets a signal that is aborted if the lease is rolled back, because then the work is in vain,
   *   and if `reason` throws or is not valid. The signal's `reason` is the error
   * @throws what `work` throws
   *
   * @example
   * ```ts
   * const { uuid } = await client.leases.begin(batch);
   * let done = 0;
   * await client.leases.whileRenewing(uuid, { reason: () => `import: ${done} rows` }, async (signal) => {
   *   for (; done < 1_000_000 && !signal.aborted; done += 1_000) await importRows(done);
   * });
   * ```
   */
  async whileRenewing<T>(
    uuid: string,
    options: RenewingOptions,
    work: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    return whileRenewing((reason) => this.answers.renew(uuid, reason), options, work);
  }

  /** Lists granted leases, oldest first, with counts instead of the batch. */
  list({ createdAfter, pageSize, pageToken, ...options }: ListLeasesOptions = {}): Pages<Lease> {
    const params = { cell: requireCell(this.#cell) };
    const query = { page_size: pageSize, created_after: createdAfter?.toISOString() };
    const input = { ...options, params, query, history: this.#history };
    return listing(this.#caller, "listLeases", input, ({ leases }) => leases, pageToken);
  }

  /** Lists leases that were granted long ago and are not decided, of all cells or of one. For operators. */
  listStale({ olderThanS, cell, pageSize, pageToken, ...options }: ListStaleLeasesOptions = {}): Pages<
    StaleLease,
    StalePage
  > {
    const query = { older_than_s: olderThanS, cell, page_size: pageSize };
    return pagesOf(this.#caller, "listStaleLeases", { ...options, query }, stalePageOf, pageToken);
  }
}

const stalePageOf = (answer: Operations["listStaleLeases"]["answer"]): StalePage => ({
  items: answer.leases,
  nextPageToken: answer.next_page_token,
  lastPulledAt: answer.last_pulled_at,
});
