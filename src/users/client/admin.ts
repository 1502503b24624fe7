import type {
  AuditEntry,
  Cell,
  CellChange,
  CellStatus,
  CredentialUse,
  ExplainedIdentity,
  IdentitiesChange,
  IdentityQuestion,
  Key,
  MintedKey,
  NewCell,
  NewKey,
  Operations,
  Part,
  PartReconciliation,
  Revocation,
  StatusReport,
  TypesChange,
  VerificationSlot,
} from "./api-types.ts";
import { requireCell, type Caller } from "./caller.ts";
import type { CallOptions } from "./connection.ts";
import { valueOf } from "./errors.ts";
import type { LedgerHistory } from "./ledger-history.ts";
import { listing, Pages, pagesOf, type Page } from "./pages.ts";

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

/** Which certificates and tokens a deployment accepts beside keys. */
export type IdentitySet = Operations["getIdentities"]["answer"];

/** What a change of the identities did, or would do. */
export type IdentitiesPlan = Operations["changeIdentities"]["answer"];

/** The certificates and tokens that a deployment accepts. For operators. */
export class IdentitySets {
  readonly #caller: Caller;

  constructor(caller: Caller) {
    this.#caller = caller;
  }

  async get(options: CallOptions = {}): Promise<IdentitySet> {
    return valueOf(await this.#caller.call("getIdentities", options));
  }

  /** Says who the holder of a certificate is, and which id revokes it or a subject of tokens. */
  async explain(question: IdentityQuestion, options: CallOptions = {}): Promise<ExplainedIdentity> {
    return valueOf(await this.#caller.call("explainIdentity", { ...options, body: question }));
  }

  /**
   * Replaces the identities, if they still have the `version` that was read; with `dry_run`, says what that
   * would change. A repeated call does no harm.
   */
  async change(body: IdentitiesChange, options: CallOptions = {}): Promise<IdentitiesPlan> {
    return valueOf(await this.#caller.call("changeIdentities", { ...options, body }));
  }
}

/** The declared types of a deployment, and which of them are in use. */
export type DeclaredTypes = Operations["getTypes"]["answer"];

/** What a change of the declared types did, or would do. */
export type TypesPlan = Operations["changeTypes"]["answer"];

/** The types that a deployment has declared. All but `list` is for operators. */
export class TypeSets {
  readonly #caller: Caller;

  constructor(caller: Caller) {
    this.#caller = caller;
  }

  /** Lists the types that claims can have now. Cells, routers, operators and viewers may. */
  async list(options: CallOptions = {}): Promise<DeclaredTypes["types"]> {
    return valueOf(await this.#caller.call("listTypes", options)).types;
  }

  async get(options: CallOptions = {}): Promise<DeclaredTypes> {
    return valueOf(await this.#caller.call("getTypes", options));
  }

  /**
   * Replaces the declared types, if they still have the `version` that was read; with `dry_run`, says what
   * that would change and what is refused. A repeated call does no harm.
   */
  async change(body: TypesChange, options: CallOptions = {}): Promise<TypesPlan> {
    return valueOf(await this.#caller.call("changeTypes", { ...options, body }));
  }
}

/**
 * Verification slots limit how many cells verify at the same time. They control load only: verification
 * without a slot is equally safe.
 */
export class VerificationSlots {
  readonly #caller: Caller;
  readonly #cell: string | undefined;

  constructor(caller: Caller, cell: string | undefined) {
    this.#caller = caller;
    this.#cell = cell;
  }

  /**
   * Takes a slot for the run with this UUID, or renews it. Throws `ResourceExhaustedError`
   * (`NO_VERIFICATION_SLOT`) while none is free. The cell then has a place in a queue, whose order is that of
   * the first calls. Call again after `retryAfterMs` of the error. A cell that is later than that by the
   * length of a slot (`LEASEHOLD_VERIFICATION_SLOT_MS`) loses its place.
   */
  async take(uuid: string, options: CallOptions = {}): Promise<VerificationSlot> {
    const params = { cell: requireCell(this.#cell), uuid };
    return valueOf(await this.#caller.call("takeVerificationSlot", { ...options, params })).slot;
  }

  /** Returns whether the run had a slot until now. */
  async release(uuid: string, options: CallOptions = {}): Promise<boolean> {
    const params = { cell: requireCell(this.#cell), uuid };
    return valueOf(await this.#caller.call("releaseVerificationSlot", { ...options, params })).released;
  }
}

/** A page of audit entries. */
export interface AuditPage extends Page<AuditEntry> {
  /** The list has every change that was made before this time. Null: not known. */
  completeThrough: string | null;
}

export interface AuditOptions extends CallOptions {
  /** Only changes by this key. */
  keyId?: string | undefined;
  /** Only changes of this kind. */
  action?: AuditEntry["action"] | undefined;
  /** Only changes that are about this cell. */
  cell?: string | undefined;
  /** Only changes of this cell, key, lease or part, or of the `types`. */
  target?: string | undefined;
  /** Only changes at or after this time (RFC 3339). */
  after?: string | undefined;
  /** Only changes before this time (RFC 3339). */
  before?: string | undefined;
  pageSize?: number | undefined;
  pageToken?: string | undefined;
}

/** What operators changed. For operators. */
export class Audit {
  readonly #caller: Caller;

  constructor(caller: Caller) {
    this.#caller = caller;
  }

  /** Lists changes, the latest first. New ones appear within a minute. */
  list(options: AuditOptions = {}): Pages<AuditEntry, AuditPage> {
    const { keyId, action, cell, target, after, before, pageSize, pageToken, ...call } = options;
    const query = { key_id: keyId, action, cell, target, after, before, page_size: pageSize };
    return pagesOf(this.#caller, "listAudit", { ...call, query }, auditPageOf, pageToken);
  }
}

const auditPageOf = (answer: Operations["listAudit"]["answer"]): AuditPage => ({
  items: answer.entries,
  nextPageToken: answer.next_page_token,
  completeThrough: answer.complete_through,
});

/** What a reconciliation did, or would do. */
export type Reconciliation = Operations["reconcilePart"]["answer"];

/** How far the scrub of a part is, and what it has found. */
export type ScrubStatus = Operations["getScrub"]["answer"];

/**
 * The shards (`shard-3`) and ledgers (`ledger-7`) of the deployment, to reconcile those that have gone back
 * in time. For operators.
 */
export class Parts {
  readonly #caller: Caller;

  constructor(caller: Caller) {
    this.#caller = caller;
  }

  async get(part: string, options: CallOptions = {}): Promise<Part> {
    return valueOf(await this.#caller.call("getPart", { ...options, params: { part } })).part;
  }

  /**
   * Accepts that a part has gone back in time; with `dry_run`, says what that would do. It may take two
   * minutes, so the client needs an `attemptMs` and a `deadlineMs` above that. A repeated call does no harm,
   * except that `declare_lost` declares a new loss each time. So the client does not retry such a call. If
   * its outcome is unknown, read the part before you repeat it.
   */
  async reconcile(
    part: string,
    body: PartReconciliation,
    options: CallOptions = {},
  ): Promise<Reconciliation> {
    const isRepeatable = body.dry_run || body.declare_lost !== true;
    return valueOf(
      await this.#caller.call("reconcilePart", { ...options, params: { part }, body, isRepeatable }),
    );
  }

  /** Takes a shard back into service, once every cell has verified. */
  async finish(part: string, body: { reason: string }, options: CallOptions = {}): Promise<Part> {
    return valueOf(await this.#caller.call("finishPart", { ...options, params: { part }, body })).part;
  }

  /** Reads what the scrub of a shard or ledger has found. */
  async scrubStatus(part: string, options: CallOptions = {}): Promise<ScrubStatus> {
    return valueOf(await this.#caller.call("getScrub", { ...options, params: { part } }));
  }

  /**
   * Checks the next rows of a shard or ledger. Repeat it while the answer has a `running` pass. With
   * `restart`, a new pass begins.
   */
  async scrub(part: string, body: { restart: boolean }, options: CallOptions = {}): Promise<ScrubStatus> {
    return valueOf(await this.#caller.call("stepScrub", { ...options, params: { part }, body }));
  }
}
