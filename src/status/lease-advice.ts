import { lineOfStatus, type Reported } from "./line-of-status.ts";

/** Leases of this age are listed as stale by default. */
const STALE_MS = 10 * 60_000;

/** What somebody should know before he decides an open lease in place of its cell. */
export const adviceOn = (lease: { cell_id: string; age_ms: number }, status: Reported | null): string[] => [
  lineOfStatus(status),
  ...(isUnseen(lease, status)
    ? [
        "The lease was stale then, but the cell reported no stale leases: its SDK doesn't see this one. " +
          `Check that it runs as cell ${lease.cell_id} of this deployment, on the database with its rows.`,
      ]
    : []),
  decisionRule(lease.cell_id),
];

/** The last reconciliation ended when the lease was stale already, and left none. */
const isUnseen = ({ age_ms: ageMs }: { age_ms: number }, status: Reported | null): boolean =>
  status?.reconciliation?.outcome === "done" &&
  status.reconciliation.stale_leases === 0 &&
  ageMs - status.reconciliation.ended_ago_ms > STALE_MS;

const decisionRule = (cell: string): string =>
  "A report has no single leases. Which decision is right is in the database of " +
  `cell ${cell}: commit if it has the changes of this lease, roll back if it doesn't. See ` +
  '"A cell is down with open leases" in docs/operating/runbook.md.';
