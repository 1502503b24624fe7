import { v7 as uuidv7 } from "uuid";
import type { BeginLimiter } from "./begin-limiter.ts";
import { requireCell, type Caller } from "./caller.ts";
import type { CallOptions } from "./connection.ts";
import { valueOf } from "./errors.ts";
import { LeaseAnswers, type BeginCallOptions, type PlacedLease } from "./lease-answers.ts";
import type { LedgerHistory } from "./ledger-history.ts";
import { listing, pagesOf, type Page, type Pages } from "./pages.ts";
import { whileRenewing, type RenewingOptions } from "./renewing.ts";
import type { Batch, Lease, Operations, StaleLease } from "./api-types.ts";

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
