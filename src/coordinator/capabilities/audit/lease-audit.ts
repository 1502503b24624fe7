import type { Audit, AuditState } from "./audit.ts";
import type { BeginRequest, DecideRequest } from "../../kernel/messages.ts";
import type { Refusal } from "../../kernel/refusal.ts";
import type { LeaseRow } from "../../kernel/ledger/store.ts";

/** What operators did to leases (O1). What a cell does to its own leases is no audit entry. */
export class LeaseAudit {
  readonly #audit: Audit;
  readonly #cell: string;

  constructor(audit: Audit, cell: string) {
    this.#audit = audit;
    this.#cell = cell;
  }

  /** Returns why an operator may not begin or decide a lease: its entry has no room (O3). */
  refusalOf(request: BeginRequest | DecideRequest): Refusal | undefined {
    return isAudited(request) ? this.#audit.refusal : undefined;
  }

  /** Must be called in the transaction that grants the lease. */
  begun(request: BeginRequest, row: LeaseRow): void {
    if (!isAudited(request)) return;
    const { caller, requestId, lease, transfer } = request;
    const action = transfer === undefined ? "begin_lease" : "prepare_transfer";
    this.#audit.append(
      { keyId: caller.keyId, requestId, reason: transfer?.reason ?? null },
      { action, cell: this.#cell, target: lease, before: null, after: stateOf(row) },
    );
  }

  /** Must be called in the transaction that decides the lease. A lease that was never granted has no row. */
  decided(request: DecideRequest, before: LeaseRow | null): void {
    if (!isAudited(request)) return;
    const { caller, requestId, reason, lease, outcome } = request;
    this.#audit.append(
      { keyId: caller.keyId, requestId, reason: reason ?? null },
      {
        action: outcome === "COMMITTED" ? "commit_lease" : "rollback_lease",
        cell: this.#cell,
        target: lease,
        before: before && stateOf(before),
        after: { state: outcome },
      },
    );
  }
}

/** The leases of a removal have no entries of their own: the removal has one when it starts and ends. */
const isAudited = ({ caller, isRemoval }: BeginRequest | DecideRequest): boolean =>
  caller.role === "operator" && isRemoval !== true;

const stateOf = ({ state, created_at_ms, creates, destroys, replaces, missing }: LeaseRow): AuditState => ({
  state,
  created_at_ms,
  creates,
  destroys,
  replaces,
  missing,
});
