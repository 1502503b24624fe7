import { countOf } from "../text/count-of.ts";
import { grouped } from "./grouped.ts";
import { driftOf, type Drift, type ReportedStatus } from "./health.ts";

export interface CellStatus {
  cell: string;
  name: string;
  address: string;
  state: "ACTIVE" | "DRAINING" | "FROZEN" | "REMOVING" | "REMOVED" | null;
  outstanding_leases: number | null;
  stale_leases: number;
  oldest_stale_ms: number | null;
  unapplied_decisions: number | null;
  stored_bytes: number | null;
  /** Whether one of the keys that are listed for it is valid. Null: not known, or none is listed. */
  has_valid_key: boolean | null;
  /** The age of what the cell reported last. */
  reported_age_ms: number | null;
  /** How the last reconciliation ended. */
  reconciliation: "done" | "aborted" | null;
  /** What the last verification found. */
  drift: Drift | null;
}

/** A cell whose leases the cron could not copy. */
export interface FailedCopy {
  cell: string;
  error: string;
}

/** The service whose keys are all about to expire: a cell, the routers, the bridges, or what scrapes. */
export interface ExpiringKeys {
  role: string;
  cell: string | null;
  /** One of the keys. */
  id: string;
  /** Until the last of them expires. */
  expires_in_ms: number;
}

/** An authority whose clients are refused soon, or already. */
export interface ExpiringAuthority {
  name: string;
  /** Until its certificate expires. Below 0: it has expired. */
  expires_in_ms: number;
}

/** What the deployment did not tell, and why. */
export interface Unread {
  what: string;
  why: string;
}

/** A growth to more shards that runs. */
interface ObservedGrowth {
  to: number;
  phase: "copying" | "cutting" | "cut";
  can_be_cut: boolean;
  age_ms: number;
  /** Since the cut was ordered. Null: it was not. */
  cut_age_ms: number | null;
}

/** An operation beside a growth that runs. */
export interface ObservedOperation {
  kind: string;
  about: string;
  age_ms: number;
}

/** The formats of the parts, and what an upgrade waits for. */
export interface ObservedUpgrade {
  format: number;
  newest_format: number;
  waiting_features: readonly string[];
  blockers: readonly { part: string }[];
}

/** The limits that a cell can reach by itself. */
export interface CellLimits {
  ledger_bytes: number;
  outstanding_leases: number;
}

/** What a deployment says about itself at one moment. */
export interface Observed {
  url: string;
  version: string | null;
  placement: string | null;
  /** `ok`, `no_cells`, or `failed`. */
  readiness: string;
  /** The parts that fail. If the deployment is ready, these are ledgers. */
  failed_parts: readonly string[];
  /** Why the deployment is not ready, in its own words. */
  failure: string | null;
  /** `up`, `outdated`, or `down`. */
  d1: string | null;
  /** The migrations that D1 lacks, if it is outdated. */
  missing_migrations: readonly string[];
  cron: { finished_at: string; age_ms: number; cells_failed: number } | null;
  failed_copies: readonly FailedCopy[];
  cells: readonly CellStatus[];
  expiring_keys: readonly ExpiringKeys[];
  expiring_authorities: readonly ExpiringAuthority[];
  /** More cells, stale leases or failed copies exist than were read. */
  cut: boolean;
  unread: readonly Unread[];
  limits: CellLimits | null;
  /** The number of shards. Null: it was not read. */
  shards: number | null;
  /** Null: none runs. */
  growth: ObservedGrowth | null;
  operations: readonly ObservedOperation[];
  /** Null: it was not read. */
  upgrade: ObservedUpgrade | null;
  key: { role: string; expires_in_ms: number } | null;
}

/** What `GET /v1/admin/cells` says of a cell, as far as its status follows from it. */
interface ObservedCell {
  cell_id: string;
  name: string;
  address: string;
  state: CellStatus["state"];
  outstanding_leases: number | null;
  unapplied_decisions: number | null;
  stored_bytes: number | null;
  status:
    | (ReportedStatus & { age_ms: number; reconciliation?: { outcome: "done" | "aborted" } | undefined })
    | null;
}

interface ObservedLease {
  cell_id: string;
  age_ms: number;
}

type Readiness = Pick<
  Observed,
  "readiness" | "failed_parts" | "failure" | "d1" | "missing_migrations" | "cron"
>;

/** Reads the answer of `/v1/admin/growth`. */
export function shardsOf(
  answer: { shards: number; growth: ApiGrowth | null } | undefined,
  nowMs: number,
): Pick<Observed, "shards" | "growth"> {
  const { shards = null, growth = null } = answer ?? {};
  const ageOf = (at: string): number => Math.max(0, nowMs - Date.parse(at));
  return {
    shards,
    growth: growth && {
      to: growth.to,
      phase: growth.phase,
      can_be_cut: growth.can_be_cut,
      age_ms: ageOf(growth.started_at),
      cut_age_ms: growth.cut_at === null ? null : ageOf(growth.cut_at),
    },
  };
}

/** A growth is read as a whole (`shardsOf`). */
export const operationsOf = (
  operations: readonly { kind: string; about: string; started_at: string }[],
  nowMs: number,
): ObservedOperation[] =>
  operations
    .filter(({ kind }) => kind !== "growth")
    .map(({ kind, about, started_at: at }) => ({
      kind,
      about,
      age_ms: Math.max(0, nowMs - Date.parse(at)),
    }));

interface ApiGrowth extends Pick<ObservedGrowth, "to" | "phase" | "can_be_cut"> {
  started_at: string;
  cut_at: string | null;
}

/** Reads the answer of `/readyz`. */
export function readinessOf(
  status: number,
  body: Readonly<Record<string, unknown>>,
  nowMs: number,
): Readiness {
  const failed = textsOf(body["failed"]);
  if (status !== 200)
    return {
      readiness: "failed",
      failed_parts: failed,
      failure: textOf(body["detail"]) ?? `HTTP ${status}`,
      d1: null,
      missing_migrations: [],
      cron: null,
    };
  return {
    readiness: textOf(body["status"]) ?? "ok",
    failed_parts: failed,
    failure: null,
    d1: textOf(body["d1"]),
    missing_migrations: textsOf(body["missing_migrations"]),
    cron: cronOf(body["last_cron_run"], nowMs),
  };
}

function cronOf(run: unknown, nowMs: number): Observed["cron"] {
  const { finished_at: at, cells_failed: failed } = (run ?? {}) as Record<string, unknown>;
  if (typeof at !== "string" || typeof failed !== "number") return null;
  return { finished_at: at, age_ms: Math.max(0, nowMs - Date.parse(at)), cells_failed: failed };
}

/** @param keyed whether the cells have a valid key. Undefined: not known */
export function cellStatusOf(
  cell: ObservedCell,
  stale: readonly ObservedLease[],
  keyed: ReadonlyMap<string, boolean> | undefined,
): CellStatus {
  const own = stale.filter(({ cell_id: id }) => id === cell.cell_id);
  return {
    cell: cell.cell_id,
    name: cell.name,
    address: cell.address,
    state: cell.state,
    outstanding_leases: cell.outstanding_leases,
    stale_leases: own.length,
    oldest_stale_ms: own.length === 0 ? null : Math.max(...own.map(({ age_ms: ms }) => ms)),
    unapplied_decisions: cell.unapplied_decisions,
    stored_bytes: cell.stored_bytes,
    has_valid_key: keyed?.get(cell.cell_id) ?? null,
    reported_age_ms: cell.status?.age_ms ?? null,
    reconciliation: cell.status?.reconciliation?.outcome ?? null,
    drift: driftOf(cell.status),
  };
}

interface ObservedCopy {
  cell_id: string;
  error: string;
}

export const failedCopyOf = ({ cell_id: cell, error }: ObservedCopy): FailedCopy => ({ cell, error });

interface ObservedKey {
  id: string;
  role: string;
  cell_id: string | null;
  expires_at: string;
  revoked_at: string | null;
}

/** Null: the deployment does not list them. */
export function cellLimitsOf(limits: readonly { name: string; value: number }[]): CellLimits | null {
  const values = new Map(limits.map(({ name, value }) => [name, value]));
  const [bytes, leases] = [values.get("ledger_bytes"), values.get("outstanding_leases")];
  if (bytes === undefined || leases === undefined) return null;
  return { ledger_bytes: bytes, outstanding_leases: leases };
}

/** Whether one of the keys that are listed for a cell is valid. Cells without a listed key are left out. */
export function keyedCellsOf(keys: readonly ObservedKey[], nowMs: number): Map<string, boolean> {
  const keyed = new Map<string, boolean>();
  for (const { cell_id: cell, expires_at: at, revoked_at: revokedAt } of keys)
    if (cell !== null)
      keyed.set(cell, keyed.get(cell) === true || (revokedAt === null && Date.parse(at) > nowMs));
  return keyed;
}

/** From this time before its expiry on, a key should be replaced. */
export const KEY_SOON_MS = 7 * 86_400_000;

/** The keys of people, who are told of their own key. */
const PERSONAL: ReadonlySet<string> = new Set(["operator", "viewer"]);

export const idsOf = (cells: readonly { cell_id: string }[]): Set<string> =>
  new Set(cells.map(({ cell_id: id }) => id));

/**
 * The services whose last key expires soon. Keys that have expired are no longer in use.
 *
 * @param cells the cells that are not removed: keys of the others are refused. Undefined: not known
 */
export function expiringKeysOf(
  keys: readonly ObservedKey[],
  nowMs: number,
  cells: ReadonlySet<string> | undefined,
): ExpiringKeys[] {
  const isUsed = (cell: string | null): boolean => cell === null || cells === undefined || cells.has(cell);
  const valid = keys
    .filter(({ role, revoked_at: revokedAt }) => !PERSONAL.has(role) && revokedAt === null)
    .filter(({ cell_id: cell }) => isUsed(cell))
    .map((key) => ({ ...key, expiresInMs: Date.parse(key.expires_at) - nowMs }))
    .filter(({ expiresInMs }) => expiresInMs > 0)
    .toSorted((a, b) => b.expiresInMs - a.expiresInMs);
  return [...grouped(valid, ({ role, cell_id: cell }) => `${role} ${cell ?? ""}`).values()]
    .flatMap(([last]) => last ?? [])
    .filter(({ expiresInMs }) => expiresInMs < KEY_SOON_MS)
    .map(({ role, cell_id: cell, id, expiresInMs }) => ({ role, cell, id, expires_in_ms: expiresInMs }));
}

/** The authorities of the identities whose certificates expire soon, or have expired. */
export const expiringAuthoritiesOf = (
  expiries: readonly { name: string; expires_at: string }[],
  nowMs: number,
): ExpiringAuthority[] =>
  expiries
    .map(({ name, expires_at: at }) => ({ name, expires_in_ms: Date.parse(at) - nowMs }))
    .filter(({ expires_in_ms: ms }) => ms < KEY_SOON_MS);

const textsOf = (value: unknown): string[] => (Array.isArray(value) ? value.map(String) : []);

export const textOf = (value: unknown): string | null => (typeof value === "string" ? value : null);

/** One line about the format in force, and about an upgrade that is not finished. */
export function formatText(upgrade: ObservedUpgrade | null): string | null {
  if (upgrade === null) return null;
  const { format, newest_format: newest, waiting_features: waiting, blockers } = upgrade;
  if (format === newest) return String(format);
  const what = blockers.length === 0 ? "`leasehold upgrade finish`" : countOf(blockers.length, "part");
  const features = waiting.length === 0 ? "" : `; off until then: ${waiting.join(", ")}`;
  return `${format}, and ${newest} waits for ${what}${features}`;
}
