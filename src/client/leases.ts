import { v7 as uuidv7 } from "uuid";
import type { BeginLimiter } from "./begin-limiter.ts";
import { requireCell, type Caller } from "./caller.ts";
import type { CallOptions } from "./connection.ts";
import { valueOf } from "./errors.ts";
import { LeaseAnswers } from "./lease-answers.ts";
import { Pages } from "./pages.ts";
import type { Batch, Lease, StaleLease } from "./api-types.ts";

export interface BeginOptions extends CallOptions {
  /** Of the lease. By default a new one (UUIDv7); give the same one to repeat a begin whose outcome is unknown. */
  uuid?: string | undefined;
}

export interface DecideOptions extends CallOptions {
  /** Operators must give one; it is kept with the outcome. Cells must not. */
  reason?: string | undefined;
}

export interface ListLeasesOptions extends CallOptions {
  /** Only leases granted at this moment or later. */
  createdAfter?: Date | undefined;
  pageSize?: number | undefined;
  /** Where to go on: the `nextPageToken` of an earlier page of the same listing. */
  pageToken?: string | undefined;
}

export interface ListStaleLeasesOptions extends CallOptions {
  /** 600 by default. */
  olderThanS?: number | undefined;
  cell?: string | undefined;
  pageSize?: number | undefined;
  pageToken?: string | undefined;
}

/** Leases of one cell. Every call may be repeated, and is while its outcome is unknown and time is left. */
export class Leases {
  /** @internal */
  readonly answers: LeaseAnswers;
  readonly #caller: Caller;
  readonly #cell: string | undefined;

  constructor(caller: Caller, beginLimiter: BeginLimiter, cell: string | undefined) {
    this.#caller = caller;
    this.answers = new LeaseAnswers(caller, beginLimiter, cell);
    this.#cell = cell;
  }

  /**
   * Takes temporary locks on all names of the batch, or on none. Resolves with the lease, GRANTED; or COMMITTED, when this UUID was begun and
   * committed before. After an error with `outcomeKnown: false` repeat it with the same UUID, or close it with `rollback`.
   */
  async begin(batch: Batch, { uuid = uuidv7(), ...options }: BeginOptions = {}): Promise<Lease> {
    return valueOf(await this.answers.begin(uuid, batch, options), uuid);
  }

  /** Makes the batch permanent. Never held back by the limit on begins or the circuit breaker. */
  async commit(uuid: string, { reason, ...options }: DecideOptions = {}): Promise<Lease> {
    return valueOf(await this.answers.commit(uuid, options, reason), uuid);
  }

  /** Releases every name of the batch, also when the outcome of its begin is unknown. Never held back either. */
  async rollback(uuid: string, { reason, ...options }: DecideOptions = {}): Promise<Lease> {
    return valueOf(await this.answers.rollback(uuid, options, reason), uuid);
  }

  /** The lease with its batch while it is granted, and its outcome for a day after it was decided. Throws `NotFoundError`. */
  async get(uuid: string, options: CallOptions = {}): Promise<Lease> {
    return valueOf(await this.answers.get(uuid, options), uuid);
  }

  /** Those that are granted and not decided, oldest first, with counts instead of the batch. */
  list({ createdAfter, pageSize, pageToken, ...options }: ListLeasesOptions = {}): Pages<Lease> {
    const params = { cell: this.#cellId() };
    const query = { page_size: pageSize, created_after: createdAfter?.toISOString() };
    return new Pages(async (token) => {
      const answer = await this.#caller.call("listLeases", {
        ...options,
        params,
        query: { ...query, page_token: token },
      });
      const { leases, next_page_token: nextPageToken } = valueOf(answer);
      return { items: leases, nextPageToken };
    }, pageToken);
  }

  /** Of all cells, or of one: granted for long, and not decided. For operators. */
  listStale({
    olderThanS,
    cell,
    pageSize,
    pageToken,
    ...options
  }: ListStaleLeasesOptions = {}): Pages<StaleLease> {
    const query = { older_than_s: olderThanS, cell, page_size: pageSize };
    return new Pages(async (token) => {
      const answer = await this.#caller.call("listStaleLeases", {
        ...options,
        query: { ...query, page_token: token },
      });
      const { leases, next_page_token: nextPageToken } = valueOf(answer);
      return { items: leases, nextPageToken };
    }, pageToken);
  }

  #cellId(): string {
    return requireCell(this.#cell);
  }
}
