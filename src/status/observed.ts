import { driftOf, type Drift, type ReportedStatus } from "./health.ts";

export interface CellStatus {
  cell: string;
  name: string;
  state: "ACTIVE" | "DRAINING" | "FROZEN" | "REMOVING" | "REMOVED" | null;
  outstanding_leases: number | null;
  stale_leases: number;
  oldest_stale_ms: number | null;
  unapplied_decisions: number | null;
  stored_bytes: number | null;
  /** The age of what the cell reported last. */
  reported_age_ms: number | null;
  /** What the last verification found. */
  drift: Drift | null;
}

/** What the deployment did not tell, and why. */
export interface Unread {
  what: string;
  why: string;
}

/** What a deployment says about itself at one moment. */
export interface Observed {
  url: string;
  version: string | null;
  placement: string | null;
  /** `ok`, `no_cells`, or `failed`. */
  readiness: string;
  /** The parts that do not answer. */
  failed_parts: readonly string[];
  /** Why the deployment is not ready, in its own words. */
  failure: string | null;
  has_lost_history: boolean;
  d1: string | null;
  cron: { finished_at: string; age_ms: number; cells_failed: number } | null;
  cells: readonly CellStatus[];
  /** More cells or stale leases exist than were read. */
  cut: boolean;
  unread: readonly Unread[];
  limits: { ledger_bytes: number; outstanding_leases: number } | null;
  key: { role: string; expires_in_ms: number } | null;
}

/** What `GET /v1/admin/cells` says of a cell, as far as its status follows from it. */
interface ObservedCell {
  cell_id: string;
  name: string;
  state: CellStatus["state"];
  outstanding_leases: number | null;
  unapplied_decisions: number | null;
  stored_bytes: number | null;
  status: (ReportedStatus & { age_ms: number }) | null;
}

interface ObservedLease {
  cell_id: string;
  age_ms: number;
}

type Readiness = Pick<
  Observed,
  "readiness" | "failed_parts" | "failure" | "has_lost_history" | "d1" | "cron"
>;

/** Reads the answer of `/readyz`. */
export function readinessOf(
  status: number,
  body: Readonly<Record<string, unknown>>,
  nowMs: number,
): Readiness {
  const failed = Array.isArray(body["failed"]) ? body["failed"].map(String) : [];
  if (status !== 200)
    return {
      readiness: "failed",
      failed_parts: failed,
      failure: textOf(body["detail"]) ?? `HTTP ${status}`,
      has_lost_history: body["reason"] === "HISTORY_LOST",
      d1: null,
      cron: null,
    };
  return {
    readiness: textOf(body["status"]) ?? "ok",
    failed_parts: [],
    failure: null,
    has_lost_history: false,
    d1: textOf(body["d1"]),
    cron: cronOf(body["last_cron_run"], nowMs),
  };
}

function cronOf(run: unknown, nowMs: number): Observed["cron"] {
  const { finished_at: at, cells_failed: failed } = (run ?? {}) as Record<string, unknown>;
  if (typeof at !== "string" || typeof failed !== "number") return null;
  return { finished_at: at, age_ms: Math.max(0, nowMs - Date.parse(at)), cells_failed: failed };
}

export function cellStatusOf(cell: ObservedCell, stale: readonly ObservedLease[]): CellStatus {
  const own = stale.filter(({ cell_id: id }) => id === cell.cell_id);
  return {
    cell: cell.cell_id,
    name: cell.name,
    state: cell.state,
    outstanding_leases: cell.outstanding_leases,
    stale_leases: own.length,
    oldest_stale_ms: own.length === 0 ? null : Math.max(...own.map(({ age_ms: ms }) => ms)),
    unapplied_decisions: cell.unapplied_decisions,
    stored_bytes: cell.stored_bytes,
    reported_age_ms: cell.status?.age_ms ?? null,
    drift: driftOf(cell.status),
  };
}

export const textOf = (value: unknown): string | null => (typeof value === "string" ? value : null);
