import { eq, isNull, sql, type SQL } from "drizzle-orm";
import { ask } from "../../../kernel/ask.ts";
import { fanOut } from "../../../kernel/fan-out.ts";
import { idleMsOf } from "../../../kernel/ledger/idle-time.ts";
import type { Envelope, LeaseCounts } from "../../../kernel/messages.ts";
import type { LeaseStatus } from "../index.ts";
import { ok, type Refusal, type Result } from "../../../kernel/refusal.ts";
import type { Config } from "../../../config.ts";
import type { Env } from "../../../env.ts";
import type { Objects } from "../../../objects/objects.ts";
import { defaultRuntime, type WallClock } from "../../../runtime.ts";
import { Database } from "../../../d1/database.ts";
import { cells } from "../../../d1/schema.ts";

/** The parts of a deployment that the listing needs. */
interface ListedDeployment {
  env: Env;
  config: Config;
  clock: WallClock;
  objects: Objects;
  envelope: Envelope;
}

/** A lease's position in the listing: the oldest first, over all cells. */
export interface StalePosition {
  createdAtMs: number;
  cell: string;
  createdPosition: number;
}

export interface StaleLease {
  lease: string;
  cell: string;
  createdAtMs: number;
  ageMs: number;
  /** When its cell renewed it last. Absent: never, or its ledger could not be asked. */
  renewedAtMs?: number;
  counts: LeaseCounts;
  /**
   * True: its ledger says that it is still granted. False: its ledger could not be asked, so it may have been
   * decided since the last pull.
   */
  confirmed: boolean;
}

export interface StalePage {
  leases: StaleLease[];
  /** The position after which the next page begins; null on the last page. */
  next: StalePosition | null;
  /**
   * The listing contains every lease that was granted before this time. Null: some cell has never been
   * pulled.
   */
  lastPulledAtMs: number | null;
}

export interface StaleQuery {
  olderThanS: number;
  cell?: string;
  after?: StalePosition;
  limit: number;
}

/** The ledger's answer about a candidate. `unknown`: it doesn't have this lease, or not any more. */
type Checked = LeaseStatus | "unknown" | "unreachable";

/**
 * The largest expected difference between two clocks. A lease that D1 has with a time further in the future
 * was granted or pulled while a clock was ahead (M4). Its ledger knows how old it is.
 */
const CLOCK_SKEW_MS = 60_000;

/** Shorter than for the cron, because a person waits for this answer. */
const DATABASE_MS = 3_000;
/**
 * The most reads for one page. Most candidates are still granted, except after the cron did not run for some
 * time.
 */
const MAX_ROUNDS = 10;
/** The fewest candidates of one read, so that short pages make progress over decided leases. */
const MIN_CANDIDATES = 100;

/**
 * Lists granted leases older than `olderThanS`, the oldest first. D1 finds candidates and their ledgers
 * confirm them, so a lease that was decided since the last pull is not listed. If very many were decided, a
 * page may be short or even empty and still have `next`.
 */
export async function listStale(deployment: ListedDeployment, query: StaleQuery): Promise<Result<StalePage>> {
  const { limit } = query;
  const { clock, env } = deployment;
  const database = new Database(env, { timeoutMs: DATABASE_MS }, { ...defaultRuntime, clock });
  const now = clock.now();
  const freshness = await readFreshness(database, query.cell);
  if (!freshness.ok) return freshness;
  const ledgers = new Ledgers(deployment);
  const shown: StaleLease[] = [];
  const page = (next: StalePosition | null): Result<StalePage> =>
    ok({ leases: shown, next, lastPulledAtMs: freshness.value });
  const batch = Math.max(limit, MIN_CANDIDATES);
  let after = query.after;
  for (let round = 0; round < MAX_ROUNDS; round += 1) {
    const found = await readCandidates(database, query, now, after, batch + 1);
    if (!found.ok) return found;
    const candidates = found.value.slice(0, batch);
    const checked = await ledgers.check(candidates);
    if (!checked.ok) return checked;
    const states = checked.value;
    for (const [index, candidate] of candidates.entries()) {
      const stale = staleLease(candidate, now, query.olderThanS, states[index]);
      if (stale !== undefined) {
        if (shown.length === limit) return page(after ?? null);
        shown.push(stale);
      }
      after = positionOf(candidate);
    }
    if (found.value.length <= batch) return page(null);
  }
  return page(after ?? null);
}

/** When the listed cells were last pulled to their end: the oldest of these times, or null. */
async function readFreshness(database: Database, cell: string | undefined): Promise<Result<number | null>> {
  const oldest = sql<number | null>`min(coalesce(${cells.lastPulledAtMs}, 0))`;
  const read = await database.run("read freshness", (orm) =>
    orm
      .select({ oldest })
      .from(cells)
      .where(cell === undefined ? isNull(cells.closedAtMs) : eq(cells.cellId, cell)),
  );
  return read.ok ? ok(read.value[0]?.oldest || null) : read;
}

interface Candidate extends StalePosition {
  lease: string;
  counts: LeaseCounts;
}

async function readCandidates(
  database: Database,
  { olderThanS, cell }: StaleQuery,
  now: number,
  after: StalePosition | undefined,
  limit: number,
): Promise<Result<Candidate[]>> {
  const read = await database.run("read stale leases", (orm) =>
    orm.all<LeaseColumns>(selectOutstanding(now, olderThanS, cell, after, limit)),
  );
  if (!read.ok) return read;
  // The ranges do not overlap, and the sort is stable.
  const found = read.value.map(candidateOf).toSorted((a, b) => a.createdAtMs - b.createdAtMs);
  return ok(found.slice(0, limit));
}

interface LeaseColumns extends LeaseCounts {
  uuid: string;
  cell_id: string;
  created_at_ms: number;
  created_position: number;
}

/**
 * Two ranges of the index: leases that are old enough, and leases with a time in the future. Each is read in
 * order and only as far as needed, which one range with OR would not be.
 */
const selectOutstanding = (
  now: number,
  olderThanS: number,
  cell: string | undefined,
  after: StalePosition | undefined,
  limit: number,
): SQL => {
  const isOld = sql`created_at_ms <= ${now - olderThanS * 1_000}`;
  const isInFuture = sql`created_at_ms > ${now + CLOCK_SKEW_MS}`;
  return sql`SELECT * FROM (${selectRange(isOld, cell, after, limit)})
    UNION ALL SELECT * FROM (${selectRange(isInFuture, cell, after, limit)})`;
};

/**
 * The unary plus keeps the cell's column from influencing the choice of the index, whose order is the order
 * of the listing.
 */
const selectRange = (
  range: SQL,
  cell: string | undefined,
  after: StalePosition | undefined,
  limit: number,
): SQL => sql`
  SELECT uuid, cell_id, created_at_ms, created_position, creates, destroys, replaces, missing
  FROM open_leases INDEXED BY open_leases_by_age
  WHERE ${range}
    ${after === undefined ? sql`` : comesAfter(after)}
    ${cell === undefined ? sql`` : sql`AND +cell_id = ${cell}`}
  ORDER BY created_at_ms, cell_id, created_position
  LIMIT ${limit}`;

const comesAfter = ({ createdAtMs, cell, createdPosition }: StalePosition): SQL =>
  sql`AND (created_at_ms, cell_id, created_position) > (${createdAtMs}, ${cell}, ${createdPosition})`;

const candidateOf = ({
  uuid,
  cell_id,
  created_at_ms,
  created_position,
  creates,
  destroys,
  replaces,
  missing,
}: LeaseColumns): Candidate => ({
  lease: uuid,
  cell: cell_id,
  createdAtMs: created_at_ms,
  createdPosition: created_position,
  counts: { creates, destroys, replaces, missing },
});

const positionOf = ({ createdAtMs, cell, createdPosition }: Candidate): StalePosition => ({
  createdAtMs,
  cell,
  createdPosition,
});

/** Returns undefined for a lease that its ledger knows as decided, renewed, or younger than D1 has it. */
function staleLease(
  { lease, cell, createdAtMs, counts }: Candidate,
  now: number,
  olderThanS: number,
  checked: Checked | undefined,
): StaleLease | undefined {
  if (checked === undefined || checked === "unknown") return undefined;
  const confirmed = checked !== "unreachable";
  if (confirmed && checked.state !== "GRANTED") return undefined;
  const grantedAtMs = confirmed ? checked.createdAtMs : createdAtMs;
  const ageMs = Math.max(0, now - grantedAtMs);
  const renewedAtMs = confirmed ? checked.renewedAtMs : null;
  const known = { createdAtMs: grantedAtMs, ageMs, ...(renewedAtMs === null ? {} : { renewedAtMs }) };
  if (confirmed && idleMsOf(known) < olderThanS * 1_000) return undefined;
  return { lease, cell, ...known, counts, confirmed };
}

/**
 * Asks ledgers for one request. A ledger that cannot be reached is not asked again, which would take another
 * timeout.
 */
class Ledgers {
  readonly #deployment: ListedDeployment;
  readonly #unreachable = new Set<string>();

  constructor(deployment: ListedDeployment) {
    this.#deployment = deployment;
  }

  /**
   * The states of the candidates, in their order, with one call per cell. Refused if the deployment has
   * another placement, so that the whole listing is repeated with that.
   */
  async check(candidates: readonly Candidate[]): Promise<Result<Checked[]>> {
    const { limits } = this.#deployment.config;
    const byCell = Map.groupBy(candidates, ({ cell }) => cell);
    const states = new Map<Candidate, Checked>();
    let outdated: Refusal | undefined;
    await fanOut([...byCell], limits.fanOut, async ([cell, ofCell]) => {
      const asked = await this.#ask(cell, ofCell);
      if (!asked.ok) outdated = asked.refusal;
      const answer = asked.ok ? asked.value : undefined;
      for (const [index, candidate] of ofCell.entries())
        states.set(candidate, answer === undefined ? "unreachable" : (answer[index] ?? "unknown"));
    });
    return outdated === undefined
      ? ok(candidates.map((candidate) => states.get(candidate) ?? "unreachable"))
      : { ok: false, refusal: outdated };
  }

  /** Undefined: the ledger cannot be reached. */
  async #ask(
    cell: string,
    candidates: readonly Candidate[],
  ): Promise<Result<(LeaseStatus | null)[] | undefined>> {
    if (this.#unreachable.has(cell)) return ok(undefined);
    const { clock, config, objects, envelope } = this.#deployment;
    const leaseIds = candidates.map(({ lease }) => lease);
    const answer = await ask(clock, config.limits.inquiryTimeoutMs, async () =>
      objects.ledger(cell).leaseStates({ ...envelope, leases: leaseIds }),
    );
    if (answer.kind === "ok") return ok(answer.value);
    if (answer.kind === "refused" && answer.refusal.reason === "PLACEMENT_MISMATCH")
      return { ok: false, refusal: answer.refusal };
    this.#unreachable.add(cell);
    return ok(undefined);
  }
}
