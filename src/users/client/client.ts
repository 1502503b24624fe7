import { Audit, Cells, IdentitySets, Keys, Parts, TypeSets, VerificationSlots } from "./admin.ts";
import { BeginLimiter, type BeginLimit } from "./begin-limiter.ts";
import type { BreakerOptions } from "./breaker.ts";
import { Caller } from "./caller.ts";
import { Changes } from "./changes.ts";
import { Connection, isKey, type CallOptions, type ConnectionOptions } from "./connection.ts";
import { InvalidArgumentError, valueOf } from "./errors.ts";
import { Leases } from "./leases.ts";
import { LedgerHistory } from "./ledger-history.ts";
import { Transfers } from "./transfers.ts";
import { Records } from "./records.ts";
import { Routing } from "./routing.ts";
import type { Limit, Operations } from "./api-types.ts";

export interface ClientOptions extends ConnectionOptions {
  /** The cell of leases and record listings. A cell gives its own id, and its own key. */
  cell?: string | undefined;
  begins?: BeginLimit | undefined;
  /** False turns the circuit breaker off. */
  breaker?: BreakerOptions | false | undefined;
}

/** A client of the coordinator's API. It is safe to share: make one per process. */
export class Client {
  readonly cell: string | undefined;
  readonly leases: Leases;
  readonly records: Records;
  readonly routing: Routing;
  readonly changes: Changes;
  readonly transfers: Transfers;
  readonly verificationSlots: VerificationSlots;
  readonly cells: Cells;
  readonly keys: Keys;
  readonly identities: IdentitySets;
  readonly parts: Parts;
  readonly types: TypeSets;
  readonly audit: Audit;
  /**
   * How far the cell's ledger had got when it answered. Store it, and add it to the next client, so that a
   * ledger whose storage went back in time is noticed. `leasehold/cell` does this in the cell's database.
   */
  readonly history = new LedgerHistory();
  readonly #caller: Caller;
  readonly #beginLimiter: BeginLimiter;

  constructor(caller: Caller, beginLimiter: BeginLimiter, cell: string | undefined) {
    this.cell = cell;
    this.#caller = caller;
    this.#beginLimiter = beginLimiter;
    this.leases = new Leases(caller, beginLimiter, cell, this.history);
    this.records = new Records(caller, cell);
    this.routing = new Routing(caller);
    this.changes = new Changes(caller);
    this.transfers = new Transfers(caller, this.history);
    this.verificationSlots = new VerificationSlots(caller, cell);
    this.cells = new Cells(caller, cell, this.history);
    this.keys = new Keys(caller);
    this.identities = new IdentitySets(caller);
    this.parts = new Parts(caller);
    this.types = new TypeSets(caller);
    this.audit = new Audit(caller);
  }

  /**
   * Returns a client for another cell, for operators. It shares the connection, the limit on begins and the
   * circuit breaker.
   */
  forCell(cell: string): Client {
    return new Client(this.#caller, this.#beginLimiter, cell);
  }

  /** Lists every limit of the deployment. */
  async limits(options: CallOptions = {}): Promise<readonly Limit[]> {
    return valueOf(await this.#caller.call("listLimits", options)).limits;
  }

  /** Asks whether the coordinator's Worker is alive. It checks nothing behind the Worker. */
  async health(options: CallOptions = {}): Promise<Operations["getHealth"]["answer"]> {
    return valueOf(await this.#caller.call("getHealth", options));
  }

  /** Asks whether all parts of the coordinator answer. Throws `UnavailableError` when one does not. */
  async readiness(options: CallOptions = {}): Promise<Operations["getReadiness"]["answer"]> {
    return valueOf(await this.#caller.call("getReadiness", options));
  }
}

/**
 * Makes a client of the coordinator at `options.url`. It is safe to share: make one per process.
 *
 * @param options - `url` and `key` are required. Leases and record listings also need `cell`.
 * @throws {InvalidArgumentError} When an option is malformed. `field` names the option.
 *
 * @example
 * ```ts
 * import { createClient } from "leasehold/client";
 *
 * const client = createClient({
 *   url: "https://leasehold.example.com",
 *   key: process.env["LEASEHOLD_KEY"] ?? "",
 *   cell: "7",
 * });
 * const lease = await client.leases.begin({
 *   creates: [
 *     {
 *       bucket: { type: "USERNAMES", value: "ada" },
 *       subject: { type: "USER", id: "1" },
 *       source: { type: "RAILS_TABLE_USERS", id: "1" },
 *     },
 *   ],
 * });
 * // Save the rows, with `lease.uuid` beside them, in one local transaction. Then:
 * await client.leases.commit(lease.uuid);
 * ```
 */
export function createClient(options: ClientOptions): Client {
  check(options);
  const beginLimiter = new BeginLimiter(options.begins ?? {}, options.breaker ?? {}, options.hooks);
  return new Client(new Caller(new Connection(options)), beginLimiter, options.cell);
}

function check({
  url,
  key,
  deadlineMs,
  attemptMs,
  retries,
  backoffMs,
  begins,
  breaker,
}: ClientOptions): void {
  if (typeof url !== "string" || !/^https?:\/\/[^/?#@]+\/*$/i.test(url))
    throw invalid("url", "must be an http or https URL without a path and credentials");
  if (typeof key !== "function" && !isKey(key))
    throw invalid("key", "must be a key, or a function that returns one");
  const positive = { deadlineMs, attemptMs, backoffMs, "begins.max": begins?.max };
  const breakerNumbers =
    breaker === false || breaker === undefined
      ? {}
      : { "breaker.failures": breaker.failures, "breaker.openMs": breaker.openMs };
  for (const [field, value] of Object.entries({ ...positive, ...breakerNumbers })) {
    if (value !== undefined && !(value > 0)) throw invalid(field, "must be above 0");
  }
  if (retries !== undefined && !(retries >= 0)) throw invalid("retries", "must be 0 or more");
}

const invalid = (field: string, message: string): InvalidArgumentError =>
  new InvalidArgumentError(`\`${field}\` ${message}`, { code: "INVALID_ARGUMENT", field });
