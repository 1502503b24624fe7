import type { GroupCommit } from "../group-commit.ts";
import type { Limits } from "../limits.ts";
import type { Decision, Outcome } from "../messages.ts";
import type { Ports } from "../ports.ts";
import { AlarmSchedule } from "../alarm-schedule.ts";
import type { ShardLinks } from "./shard-links.ts";
import { decodePayload } from "./payload.ts";
import type { LeaseRow, LedgerStore } from "./store.ts";

/** Open decisions that one instance keeps in memory; the rest stay in their rows until there is room. */
const MAX_TRACKED = 10_000;
/** Decisions that one alarm tries again. */
const DECISIONS_PER_ALARM = 500;
/** The first pause after a failed try; doubles up to `maxBackoffMs`. */
const FIRST_PAUSE_MS = 1_000;
/** How far all is applied is written this long after a decision, once for all that came meanwhile. */
const ADVANCE_AFTER_MS = 5_000;

interface OpenDecision {
  lease: string;
  position: number;
  dueAtMs: number;
  pauseMs: number;
  /** Its row is durable: it may be told (rule C2). */
  isDurable: boolean;
  /** As it was decided, for the first try; later ones read it again, because a payload may be large. */
  row: LeaseRow | undefined;
  /** Shards that have not confirmed yet; unknown after a restart, when all are told again. */
  remaining: Set<number> | undefined;
  underWay: Promise<void> | undefined;
}

/**
 * Brings decisions to their shards, without end (rule C3). A decision is open from the transaction that makes it until every shard has
 * confirmed it; no row says so by itself. `applied_position` says up to where all are applied: a restart tells again what was decided
 * behind it, which changes nothing where it was applied (rule C2).
 */
export class Deliveries {
  readonly #ports: Ports;
  readonly #limits: Limits;
  readonly #store: LedgerStore;
  readonly #links: ShardLinks;
  readonly #cell: string;
  readonly #open = new Map<string, OpenDecision>();
  /** Up to here the rows are known to this instance; behind it there may be more open ones. */
  #loadedThrough = 0;
  readonly #alarm: AlarmSchedule;

  constructor(ports: Ports, limits: Limits, store: LedgerStore, links: ShardLinks, cell: string) {
    this.#ports = ports;
    this.#limits = limits;
    this.#store = store;
    this.#links = links;
    this.#cell = cell;
    this.#alarm = new AlarmSchedule(ports.alarm, ports.clock);
    this.#load();
  }

  /** Before an instance answers its first message: its predecessor may have left decisions, and the platform may have lost its alarm. */
  async start(): Promise<void> {
    await this.#alarm.load();
    this.#rearm();
  }

  get unapplied(): number {
    return this.#open.size;
  }

  /** Called in the transaction that decides. From here on the alarm knows of it. */
  track(row: LeaseRow): void {
    const { lease, position } = row;
    const dueAtMs = this.#ports.clock.now() + ADVANCE_AFTER_MS;
    this.#open.set(lease, { ...openDecision(lease, position, dueAtMs), isDurable: false, row });
    this.#alarm.setBy(dueAtMs);
  }

  /** One try at every shard that has not confirmed. Resolves when each has answered or failed; the alarm does the rest. */
  deliver(lease: string): Promise<void> {
    const open = this.#open.get(lease) ?? this.#reopen(lease);
    if (open === undefined) return Promise.resolve();
    open.isDurable = true;
    open.underWay ??= this.#deliverOnce(open).finally(() => {
      open.underWay = undefined;
    });
    return open.underWay;
  }

  /** One that there was no room for in memory, and that somebody asks about. */
  #reopen(lease: string): OpenDecision | undefined {
    if (this.#loadedThrough === Infinity) return undefined;
    const row = this.#store.findWhole(lease);
    // What was read before and is not open any more was confirmed.
    if (row === undefined || row.decided === 0 || row.payload === null || row.position <= this.#loadedThrough)
      return undefined;
    const open = openDecision(lease, row.position, this.#ports.clock.now());
    this.#open.set(lease, open);
    return open;
  }

  async #deliverOnce(open: OpenDecision): Promise<void> {
    let decisions: Map<number, Decision>;
    try {
      const row = open.row ?? this.#store.findWhole(open.lease);
      open.row = undefined;
      decisions = row === undefined ? new Map() : decisionsOf(this.#cell, row);
    } catch (error) {
      // A row that this version cannot read must not stop the others.
      this.#ports.log("decision_unreadable", {
        lease: open.lease,
        error: error instanceof Error ? error.message : String(error),
      });
      this.#postpone(open);
      return;
    }
    const remaining = (open.remaining ??= new Set(decisions.keys()));
    const confirmations = [...remaining].map(async (shard) => {
      const decision = decisions.get(shard);
      if (decision === undefined || (await this.#links.decide(shard, decision)).kind === "ok")
        remaining.delete(shard);
    });
    await Promise.all(confirmations);
    if (remaining.size === 0) this.#open.delete(open.lease);
    else this.#postpone(open);
  }

  #postpone(open: OpenDecision): void {
    open.dueAtMs = this.#ports.clock.now() + open.pauseMs * (1 + this.#ports.randomness.fraction());
    open.pauseMs = Math.min(open.pauseMs * 2, this.#limits.maxBackoffMs);
    this.#alarm.setBy(open.dueAtMs);
  }

  /** The alarm: tries what is due, and says how far all is applied. Bounded; may run at any time, also twice. */
  async deliverDue(commits: GroupCommit): Promise<void> {
    this.#alarm.markRung();
    try {
      const now = this.#ports.clock.now();
      const due = [...this.#open.values()].filter(
        ({ dueAtMs, isDurable, underWay }) => isDurable && underWay === undefined && dueAtMs <= now,
      );
      await Promise.all(due.slice(0, DECISIONS_PER_ALARM).map(({ lease }) => this.deliver(lease)));
      const applied = this.#appliedPosition();
      if (applied > this.#store.number("applied_position"))
        await commits.submit(
          "advance_applied",
          () => (this.#store.setNumber("applied_position", applied), null),
        );
      if (this.#open.size < MAX_TRACKED / 2) this.#load();
    } finally {
      this.#rearm();
    }
  }

  /** Keeps an alarm set while there is work (rule M3). */
  #rearm(): void {
    const now = this.#ports.clock.now();
    if (this.#appliedPosition() > this.#store.number("applied_position"))
      this.#alarm.setBy(now + ADVANCE_AFTER_MS);
    let next = Infinity;
    for (const { dueAtMs, isDurable, underWay } of this.#open.values()) {
      next = Math.min(next, isDurable && underWay === undefined ? dueAtMs : now + ADVANCE_AFTER_MS);
    }
    if (next !== Infinity) this.#alarm.setBy(next);
  }

  #load(): void {
    const from = Math.max(this.#loadedThrough, this.#store.number("applied_position"));
    if (from === Infinity) return;
    const rows = this.#store.unapplied(from, MAX_TRACKED);
    const now = this.#ports.clock.now();
    for (const { lease, position } of rows) {
      if (this.#open.has(lease)) continue;
      this.#open.set(lease, openDecision(lease, position, now));
    }
    this.#loadedThrough = rows.length < MAX_TRACKED ? Infinity : (rows.at(-1)?.position ?? Infinity);
  }

  #appliedPosition(): number {
    let through = this.#loadedThrough === Infinity ? this.#store.lastDecidedPosition() : this.#loadedThrough;
    for (const { position } of this.#open.values()) through = Math.min(through, position - 1);
    return through;
  }
}

const openDecision = (lease: string, position: number, dueAtMs: number): OpenDecision => ({
  lease,
  position,
  dueAtMs,
  pauseMs: FIRST_PAUSE_MS,
  isDurable: true,
  row: undefined,
  remaining: undefined,
  underWay: undefined,
});

/** The decision for each shard that may hold something of the lease. None for a fence, which holds nothing. */
function decisionsOf(cell: string, row: LeaseRow): Map<number, Decision> {
  const decisions = new Map<number, Decision>();
  if (row.payload === null || row.epochs === null || row.state === "GRANTED") return decisions;
  const outcome: Outcome = row.state;
  const { lease, incarnation, counter } = row;
  for (const [shard, epoch] of Object.entries(JSON.parse(row.epochs) as Record<string, number>)) {
    decisions.set(Number(shard), { cell, lease, incarnation, counter, outcome, epoch, keys: [] });
  }
  for (const { shard, type, canonical } of decodePayload(row.payload))
    decisions.get(shard)?.keys.push({ type, canonical });
  return decisions;
}
