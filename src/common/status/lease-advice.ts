import { lineOfStatus, type Reported } from "./line-of-status.ts";

/** Leases of this age are listed as stale by default. */
const STALE_MS = 10 * 60_000;

interface OpenLease {
  cell_id: string;
  age_ms: number;
  idle_ms?: number | undefined;
  renewed_at?: string | undefined;
  renewal_reason?: string | undefined;
}

/** What somebody should know before he decides an open lease in place of its cell. */
export const adviceOn = (lease: OpenLease, status: Reported | null): string[] => [
  lineOfStatus(status),
  ...(lease.renewed_at === undefined
    ? []
    : [`The cell said at ${lease.renewed_at} that it still works on it: ${lease.renewal_reason ?? ""}`]),
  ...(isUnseen(lease, status)
    ? [
        "The lease was stale then, but the cell reported no stale leases: its SDK doesn't see this one. " +
          `Check that it runs as cell ${lease.cell_id} of this deployment, on the database with its rows.`,
      ]
    : []),
  decisionRule(lease.cell_id),
];

/** The last reconciliation ended when the lease was stale already, and left none. */
const isUnseen = ({ age_ms: ageMs, idle_ms: idleMs = ageMs }: OpenLease, status: Reported | null): boolean =>
  status?.reconciliation?.outcome === "done" &&
  status.reconciliation.stale_leases === 0 &&
  idleMs - status.reconciliation.ended_ago_ms > STALE_MS;

const decisionRule = (cell: string): string =>
  "A report has no single leases. Which decision is right is in the database of " +
  `cell ${cell}: commit if it has the changes of this lease, roll back if it doesn't. See ` +
  '"A cell is down with open leases" in docs/operating/runbook.md.';
