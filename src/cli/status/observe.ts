import { isLeaseholdError, type Cell, type Client, type StaleLease } from "../../client/index.ts";
import { keyFactsOf } from "../connection/key-facts.ts";
import { bodyOf, type RawAnswer } from "../connection/send.ts";
import { messageOf } from "../framework/command-error.ts";
import type { Context } from "../framework/context.ts";
import { take } from "../output/result.ts";
import { driftOf, type Drift } from "../verify/health.ts";

export interface CellStatus {
  cell: string;
  name: string;
  state: "ACTIVE" | "DRAINING" | "FROZEN" | null;
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
interface Unread {
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

/** A deployment has at most 1,000 cells. */
const MAX_CELLS = 1_000;
const MAX_STALE = 1_000;

export async function observe(context: Context): Promise<Observed> {
  const { url, key } = await context.target();
  const client = await context.client();
  const unread: Unread[] = [];
  const health = await attempt(unread, "The version", () =>
    context.send({ method: "GET", path: "/healthz" }),
  );
  // Nothing else can answer then, and every call would wait for its deadline.
  if (health === undefined) return nothing(url, unread);
  const ready = await context.send({ method: "GET", path: "/readyz" });
  const nowMs = timeOf(ready) ?? context.io.now();
  const cells = await attempt(unread, "The list of cells", () => take(client.cells.list(), MAX_CELLS));
  const stale = await attempt(unread, "The list of stale leases", () =>
    take(client.leases.listStale(), MAX_STALE),
  );
  const limits = await attempt(unread, "The list of limits", () => limitsOf(client));
  const facts = keyFactsOf(key);
  return {
    url,
    version: textOf(bodyOf(health)["version"]),
    placement: textOf(bodyOf(health)["placement"]),
    ...readinessOf(ready, nowMs),
    cells: cells?.items.map((cell) => statusOf(cell, stale?.items ?? [])) ?? [],
    cut: cells?.isCut === true || stale?.isCut === true,
    unread,
    limits: limits ?? null,
    key: facts === undefined ? null : { role: facts.role, expires_in_ms: facts.expiresAtMs - nowMs },
  };
}

/** A key that is refused ends the command. Everything else is one more thing that is not in order. */
async function attempt<T>(unread: Unread[], what: string, work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await work();
  } catch (error) {
    if (isLeaseholdError(error) && !UNREADABLE.has(error.code)) throw error;
    unread.push({ what, why: messageOf(error) });
    return undefined;
  }
}

const UNREADABLE: ReadonlySet<string> = new Set(["UNAVAILABLE", "DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED"]);

const nothing = (url: string, unread: readonly Unread[]): Observed => ({
  url,
  version: null,
  placement: null,
  readiness: "failed",
  failed_parts: [],
  failure: null,
  has_lost_history: false,
  d1: null,
  cron: null,
  cells: [],
  cut: false,
  unread,
  limits: null,
  key: null,
});

/** The deployment's clock. The times that it tells are not compared with the clock of this machine. */
function timeOf(answer: RawAnswer): number | undefined {
  const ms = Date.parse(answer.header("date") ?? "");
  return Number.isNaN(ms) ? undefined : ms;
}

type Readiness = Pick<
  Observed,
  "readiness" | "failed_parts" | "failure" | "has_lost_history" | "d1" | "cron"
>;

function readinessOf(answer: RawAnswer, nowMs: number): Readiness {
  const body = bodyOf(answer);
  const failed = Array.isArray(body["failed"]) ? body["failed"].map(String) : [];
  if (answer.status !== 200)
    return {
      readiness: "failed",
      failed_parts: failed,
      failure: textOf(body["detail"]) ?? `HTTP ${answer.status}`,
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

function statusOf(cell: Cell, stale: readonly StaleLease[]): CellStatus {
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

async function limitsOf(client: Client): Promise<Observed["limits"]> {
  const limits = new Map((await client.limits()).map(({ name, value }) => [name, value]));
  const [bytes, leases] = [limits.get("ledger_bytes"), limits.get("outstanding_leases")];
  if (bytes === undefined || leases === undefined) return null;
  return { ledger_bytes: bytes, outstanding_leases: leases };
}

const textOf = (value: unknown): string | null => (typeof value === "string" ? value : null);
