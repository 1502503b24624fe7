import { requireCell, type Caller } from "./caller.ts";
import type { CallOptions } from "./connection.ts";
import { valueOf } from "./errors.ts";
import type { LedgerHistory } from "./ledger-history.ts";
import { listing, Pages } from "./pages.ts";
import type {
  Cell,
  CellChange,
  CellStatus,
  CredentialUse,
  Key,
  MintedKey,
  NewCell,
  NewKey,
  Revocation,
  StatusReport,
} from "./api-types.ts";

interface PageOptions extends CallOptions {
  pageSize?: number | undefined;
  pageToken?: string | undefined;
}

interface CellsOptions extends PageOptions {
  /** True: cells that were removed are listed too. */
  includeRemoved?: boolean | undefined;
}

interface UsesOptions extends PageOptions {
  kind?: CredentialUse["kind"] | undefined;
  /** Only those with one of these ids, at most 50. Left out: all. */
  ids?: string[] | undefined;
}

interface StateOptions extends CallOptions {
  /** Why you do this. The audit keeps it. */
  reason?: string | undefined;
}

/** The cells of the deployment, for operators, and what the client's own cell says of itself. */
export class Cells {
  readonly #caller: Caller;
  readonly #cell: string | undefined;
  readonly #history: LedgerHistory;

  constructor(caller: Caller, cell: string | undefined, history: LedgerHistory) {
    this.#caller = caller;
    this.#cell = cell;
    this.#history = history;
  }

  /**
   * Reports the status of the client's cell. Parts that are left out stay as they were reported before.
   * Throws `ResourceExhaustedError` (`STATUS_TOO_EARLY`) within 5 s of the cell's last report.
   */
  async reportStatus(report: StatusReport, options: CallOptions = {}): Promise<CellStatus> {
    const input = { ...options, params: this.#params, body: report, history: this.#history };
    return valueOf(await this.#caller.call("reportStatus", input)).status;
  }

  /** Returns what the client's cell said of itself last; null if it has never reported. */
  async status(options: CallOptions = {}): Promise<CellStatus | null> {
    const input = { ...options, params: this.#params, history: this.#history };
    return valueOf(await this.#caller.call("getStatus", input)).status;
  }

  get #params(): { cell: string } {
    return { cell: requireCell(this.#cell) };
  }

  /** Lists the cells in the order of their ids. Cells that were removed are left out. */
  list({ pageSize, pageToken, includeRemoved, ...options }: CellsOptions = {}): Pages<Cell> {
    const query = { page_size: pageSize, include_removed: includeRemoved ? ("true" as const) : undefined };
    const input = { ...options, query };
    return listing(this.#caller, "listCells", input, ({ cells }) => cells, pageToken);
  }

  /**
   * Adds a cell. The client never repeats this call: after an unknown outcome, look for the cell with `list`.
   */
  async add(cell: NewCell, options: CallOptions = {}): Promise<Cell> {
    return valueOf(await this.#caller.call("addCell", { ...options, body: cell })).cell;
  }

  async change(cell: string, change: CellChange, options: CallOptions = {}): Promise<Cell> {
    return valueOf(await this.#caller.call("changeCell", { ...options, params: { cell }, body: change }))
      .cell;
  }

  /** Freezes a cell: the coordinator refuses its begins. All other calls still work. */
  async freeze(cell: string, { reason, ...options }: StateOptions = {}): Promise<Cell> {
    const input = { ...options, params: { cell }, body: { reason } };
    return valueOf(await this.#caller.call("freezeCell", input)).cell;
  }

  /** Drains a cell: the coordinator refuses its begins, except those of a verification. */
  async drain(cell: string, { reason, ...options }: StateOptions = {}): Promise<Cell> {
    const input = { ...options, params: { cell }, body: { reason } };
    return valueOf(await this.#caller.call("drainCell", input)).cell;
  }

  /** Lets a frozen or draining cell begin leases again. */
  async unfreeze(cell: string, { reason, ...options }: StateOptions = {}): Promise<Cell> {
    const input = { ...options, params: { cell }, body: { reason } };
    return valueOf(await this.#caller.call("unfreezeCell", input)).cell;
  }
}

/** The keys of the deployment. For operators. */
export class Keys {
  readonly #caller: Caller;

  constructor(caller: Caller) {
    this.#caller = caller;
  }

  list({ pageSize, pageToken, ...options }: PageOptions = {}): Pages<Key> {
    const input = { ...options, query: { page_size: pageSize } };
    return listing(this.#caller, "listKeys", input, ({ keys }) => keys, pageToken);
  }

  /** Lists the keys, certificates and subjects of tokens that were used, in the order of their ids. */
  uses({ kind, ids, pageSize, pageToken, ...options }: UsesOptions = {}): Pages<CredentialUse> {
    // Without an id, the coordinator lists all.
    if (ids?.length === 0) return new Pages(async () => ({ items: [], nextPageToken: "" }));
    const input = { ...options, query: { kind, id: ids, page_size: pageSize } };
    return listing(this.#caller, "listCredentialUses", input, ({ uses }) => uses, pageToken);
  }

  /** Makes a key. The client never repeats this call: if its answer is lost, nobody has the key. */
  async mint(key: NewKey, options: CallOptions = {}): Promise<MintedKey> {
    return valueOf(await this.#caller.call("mintKey", { ...options, body: key }));
  }

  async revoke(id: string, revocation: Revocation = {}, options: CallOptions = {}): Promise<Key> {
    return valueOf(await this.#caller.call("revokeKey", { ...options, params: { id }, body: revocation }))
      .key;
  }
}
