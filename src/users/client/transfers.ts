import { v7 as uuidv7 } from "uuid";
import type { Transfer, TransferPlan } from "./api-types.ts";
import type { Caller } from "./caller.ts";
import type { CallOptions } from "./connection.ts";
import { valueOf } from "./errors.ts";
import type { LedgerHistory } from "./ledger-history.ts";
import { listing, type Pages } from "./pages.ts";

/** What a transfer moves. */
export interface MovedScope {
  /** The cell that has the claims. Required of operators; a cell is its own source. */
  from?: string | undefined;
  /** The cell that gets the claims. */
  to: string;
  /** All claims of `from` that have this scope are moved. */
  scope: string;
}

export interface TransferStepOptions extends CallOptions {
  /** Why you do this. Required of operators. */
  reason?: string | undefined;
}

export interface PrepareTransferOptions extends TransferStepOptions {
  /** A new UUIDv7 by default. Give the same one to repeat a prepare whose outcome is unknown. */
  uuid?: string | undefined;
  /** The id of the finished transfer that this one undoes. */
  switchBackOf?: string | undefined;
}

/** What a cell has in its rows of a scope. */
export interface ReportedRows {
  /** Whose rows these are. Required of operators; a cell reports its own rows. */
  side?: "from" | "to" | undefined;
  count: number;
  /** The digest: 32 hexadecimal digits. */
  hash: string;
}

export interface ListTransfersOptions extends CallOptions {
  /** Lists only transfers from this cell. */
  from?: string | undefined;
  /** Lists only transfers to this cell. */
  to?: string | undefined;
  pageSize?: number | undefined;
  pageToken?: string | undefined;
}

/** A plan that adds up the answers of as many calls as it takes. */
export type TransferPlanned = Omit<TransferPlan, "cursor">;

/**
 * Transfers of all names of a scope from one cell to another. The source prepares and cuts, the destination
 * accepts, both report their rows, and operators may do all of it. Every call is safe to repeat.
 */
export class Transfers {
  readonly #caller: Caller;
  readonly #history: LedgerHistory;

  constructor(caller: Caller, history: LedgerHistory) {
    this.#caller = caller;
    this.#history = history;
  }

  /** Counts what a transfer would move, and says what would be in its way. Changes nothing. */
  async plan(moved: MovedScope, options: CallOptions = {}): Promise<TransferPlanned> {
    const parts: TransferPlan[] = [];
    for (let cursor = ""; ;) {
      const body = { ...moved, cursor };
      const { plan } = valueOf(await this.#caller.call("planTransfer", { ...options, body }));
      parts.push(plan);
      if (plan.cursor === null) return sumOf(parts, plan);
      cursor = plan.cursor;
    }
  }

  /**
   * Holds the names that the source has in a scope on all shards, or on none. Until the transfer is cut or
   * aborted, they can't be changed or released, and the source can't claim more.
   *
   * @throws ClaimLeasedError while leases of the source hold names of the scope. Nothing was prepared.
   * @example
   * ```ts
   * const { id } = await client.transfers.prepare({ to: "7", scope: "9970" });
   * ```
   */
  async prepare(
    moved: MovedScope,
    { uuid = uuidv7(), switchBackOf, reason, ...options }: PrepareTransferOptions = {},
  ): Promise<Transfer> {
    const body = { uuid, ...moved, switch_back_of: switchBackOf, reason };
    const input = { ...options, body, history: this.#history };
    return valueOf(await this.#caller.call("prepareTransfer", input)).transfer;
  }

  /** Returns a transfer, with what a cut still needs. */
  async get(id: string, options: CallOptions = {}): Promise<Transfer> {
    const input = { ...options, params: { id }, history: this.#history };
    return valueOf(await this.#caller.call("getTransfer", input)).transfer;
  }

  /** Lists transfers by their destinations, and for each of them the latest first. */
  list({ from, to, pageSize, pageToken, ...options }: ListTransfersOptions = {}): Pages<Transfer> {
    const query = { from, to, page_size: pageSize };
    const input = { ...options, query, history: this.#history };
    return listing(this.#caller, "listTransfers", input, ({ transfers }) => transfers, pageToken);
  }

  /** Says that the destination takes the names. */
  accept(id: string, options: TransferStepOptions = {}): Promise<Transfer> {
    return this.#step("acceptTransfer", id, options);
  }

  /**
   * Reports the rows that a cell has in the scope. `cell.reportTransfer(id)` of `leasehold/cell` counts the
   * rows and reports them.
   */
  async report(id: string, rows: ReportedRows, options: TransferStepOptions = {}): Promise<Transfer> {
    const { reason, ...call } = options;
    const input = { ...call, params: { id }, body: { ...rows, reason }, history: this.#history };
    return valueOf(await this.#caller.call("reportTransfer", input)).transfer;
  }

  /**
   * Gives the names to the destination. This is final.
   *
   * @throws FailedPreconditionError (`TRANSFER_NOT_READY`) if something is missing
   */
  cut(id: string, options: TransferStepOptions = {}): Promise<Transfer> {
    return this.#step("cutTransfer", id, options);
  }

  /** Ends a transfer that was not cut. Nothing has changed. */
  abort(id: string, options: TransferStepOptions = {}): Promise<Transfer> {
    return this.#step("abortTransfer", id, options);
  }

  async #step(
    operation: "acceptTransfer" | "cutTransfer" | "abortTransfer",
    id: string,
    { reason, ...options }: TransferStepOptions,
  ): Promise<Transfer> {
    const input = { ...options, params: { id }, body: { reason }, history: this.#history };
    return valueOf(await this.#caller.call(operation, input)).transfer;
  }
}

function sumOf(parts: readonly TransferPlan[], { from, to, scope }: TransferPlan): TransferPlanned {
  const claims = new Map<string, TransferPlan["claims"][number]>();
  for (const each of parts.flatMap((part) => part.claims)) {
    const key = `${each.source_type} ${each.bucket_type}`;
    claims.set(key, { ...each, count: each.count + (claims.get(key)?.count ?? 0) });
  }
  return {
    from,
    to,
    scope,
    claims: [...claims.values()],
    claims_total: parts.reduce((sum, part) => sum + part.claims_total, 0),
    present_claims: parts.reduce<number | null>(
      (sum, { present_claims: present }) => (sum === null || present === null ? null : sum + present),
      0,
    ),
    leases: parts.flatMap((part) => part.leases),
    obstacles: [...new Set(parts.flatMap((part) => part.obstacles))],
  };
}
