import type { AuditState, AuditTrail } from "../../kernel/audit-trail.ts";
import type { LedgerBegin, LedgerHooks } from "../../kernel/ledger/hooks.ts";
import type { LeaseRow } from "../../kernel/ledger/lease-table.ts";

/** What operators did to leases (O1). What a cell does to its own leases is no audit entry. */
export const auditOfLeases = (audit: AuditTrail, cell: string): LedgerHooks => ({
  // Why an operator may not begin or decide a lease: its entry has no room (O3).
  guardGrant: (request) => (isAudited(request) ? audit.refusal : undefined),
  guardDecision: ({ caller }) => (caller.role === "operator" ? audit.refusal : undefined),
  granted: (request, row) => {
    if (!isAudited(request)) return;
    const { caller, requestId, lease } = request;
    audit.append(
      { keyId: caller.keyId, requestId, reason: null },
      { action: "begin_lease", cell, target: lease, before: null, after: stateOf(row) },
    );
  },
  decided: (request, before) => {
    if (request.caller.role !== "operator") return;
    const { caller, requestId, reason, lease, outcome } = request;
    audit.append(
      { keyId: caller.keyId, requestId, reason: reason ?? null },
      {
        action: outcome === "COMMITTED" ? "commit_lease" : "rollback_lease",
        cell,
        target: lease,
        before: before && stateOf(before),
        after: { state: outcome },
      },
    );
  },
});

const isAudited = ({ caller, isPart }: LedgerBegin): boolean => caller.role === "operator" && isPart !== true;

const stateOf = ({ state, created_at_ms, creates, destroys, replaces, missing }: LeaseRow): AuditState => ({
  state,
  created_at_ms,
  creates,
  destroys,
  replaces,
  missing,
});
