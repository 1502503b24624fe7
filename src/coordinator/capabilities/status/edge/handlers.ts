import type * as z from "zod";
import { ok } from "../../../kernel/refusal.ts";
import type { StatusReport } from "../status.ts";
import { toApiStatus } from "../../../api/answers.ts";
import type { statusReport } from "../../../api/contract/schemas.ts";
import { statusRoutes } from "./routes.ts";
import type { Handlers } from "../../../api/handler.ts";
import { readTimeoutMs } from "../../../isolate/reach.ts";
import { askerOf, askLedger } from "../../../api/handlers/ledger-access.ts";

const statusHandlers: Handlers<typeof statusRoutes> = {
  async reportStatus({ deployment, principal, params: { cell }, body, seen }) {
    const request = { ...askerOf(deployment, principal, seen), ...reportOf(body) };
    const timeoutMs = readTimeoutMs(deployment.config.limits);
    const stored = await askLedger(principal, timeoutMs, () =>
      deployment.objects.ledger(cell).reportStatus(request),
    );
    if (!stored.ok) return stored;
    const { value, headers } = stored.value;
    return ok({ status: 200, body: { status: toApiStatus(cell, value) }, headers });
  },

  async getStatus({ deployment, principal, params: { cell }, seen }) {
    const request = askerOf(deployment, principal, seen);
    const timeoutMs = readTimeoutMs(deployment.config.limits);
    const read = await askLedger(principal, timeoutMs, () =>
      deployment.objects.ledger(cell).reportedStatus(request),
    );
    if (!read.ok) return read;
    const { value, headers } = read.value;
    const status = value === null ? null : toApiStatus(cell, value);
    return ok({ status: 200, body: { status }, headers });
  },
};

const reportOf = ({ sdk, reconciliation, verification }: z.output<typeof statusReport>): StatusReport => ({
  sdk,
  reconciliation: reconciliation && {
    outcome: reconciliation.outcome,
    isFull: reconciliation.is_full,
    ...agesOf(reconciliation),
    counts: reconciliation.counts,
    staleLeases: reconciliation.stale_leases,
    unreleasedDeletions: reconciliation.unreleased_deletions,
  },
  verification: verification && {
    status: verification.status,
    isApplied: verification.is_applied,
    ...agesOf(verification),
    counts: verification.counts,
    approvalReason: verification.approval_reason,
  },
});

const agesOf = ({
  started_ago_ms: startedAgoMs,
  ended_ago_ms: endedAgoMs = 0,
}: {
  started_ago_ms?: number | undefined;
  ended_ago_ms?: number | undefined;
}) => ({ startedAgoMs, endedAgoMs });

export { statusHandlers as handlers, statusRoutes as routes };
