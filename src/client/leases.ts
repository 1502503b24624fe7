import { v7 as uuidv7 } from "uuid";
import { unknown, type Answer } from "./answer.ts";
import type { BeginLimiter } from "./begin-limiter.ts";
import type { Caller } from "./caller.ts";
import type { CallOptions } from "./connection.ts";
import { InvalidArgumentError, valueOf } from "./errors.ts";
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
  readonly #caller: Caller;
  readonly #beginLimiter: BeginLimiter;
  readonly #cell: string | undefined;

  constructor(caller: Caller, beginLimiter: BeginLimiter, cell: string | undefined) {
    this.#caller = caller;
    this.#beginLimiter = beginLimiter;
    this.#cell = cell;
  }

  /**
   * Takes temporary locks on all names of the batch, or on none. Resolves with the lease, GRANTED; or COMMITTED, when this UUID was begun and
   * committed before. After an error with `outcomeKnown: false` repeat it with the same UUID, or close it with `rollback`.
   */
  async begin(batch: Batch, { uuid = uuidv7(), ...options }: BeginOptions = {}): Promise<Lease> {
    const params = this.#params(uuid);
    const answer = await this.#beginLimiter.run(async () =>
      this.#caller.call("beginLease", { ...options, params, body: batch }),
    );
    return leaseOf(answer, uuid);
  }

  /** Makes the batch permanent. Never held back by the limit on begins or the circuit breaker. */
  async commit(uuid: string, { reason, ...options }: DecideOptions = {}): Promise<Lease> {
    const params = this.#params(uuid);
    return leaseOf(await this.#caller.call("commitLease", { ...options, params, ...bodyOf(reason) }), uuid);
  }

  /** Releases every name of the batch, also when the outcome of its begin is unknown. Never held back either. */
  async rollback(uuid: string, { reason, ...options }: DecideOptions = {}): Promise<Lease> {
    const params = this.#params(uuid);
    return leaseOf(await this.#caller.call("rollbackLease", { ...options, params, ...bodyOf(reason) }), uuid);
  }

  /** The lease with its batch while it is granted, and its outcome for a day after it was decided. Throws `NotFoundError`. */
  async get(uuid: string, options: CallOptions = {}): Promise<Lease> {
    return leaseOf(await this.#caller.call("getLease", { ...options, params: this.#params(uuid) }), uuid);
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

  #params(uuid: string): { cell: string; uuid: string } {
    return { cell: this.#cellId(), uuid };
  }

  #cellId(): string {
    return requireCell(this.#cell);
  }
}

export function requireCell(cell: string | undefined): string {
  if (cell !== undefined) return cell;
  throw new InvalidArgumentError(
    "this call is about one cell: give `cell` to createClient, or use forCell()",
    {
      code: "INVALID_ARGUMENT",
      field: "cell",
    },
  );
}

const bodyOf = (reason: string | undefined): { body?: { reason: string } } =>
  reason === undefined ? {} : { body: { reason } };

const STATES: ReadonlySet<string> = new Set([
  "GRANTED",
  "COMMITTED",
  "ROLLED_BACK",
] satisfies Lease["state"][]);

/** A state that this client does not know is no state to act upon. */
function leaseOf(answer: Answer<{ lease: Lease }>, uuid: string): Lease {
  const { lease } = valueOf(answer, uuid);
  return STATES.has(lease.state)
    ? lease
    : valueOf(unknown(`the lease has a state that is not known here: ${lease.state}`), uuid);
}
