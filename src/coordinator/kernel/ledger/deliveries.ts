import type { GroupCommit } from "../group-commit.ts";
import type { Limits } from "../../../common/limits.ts";
import type { Decision } from "../messages.ts";
import type { Placement } from "../placement.ts";
import type { Ports } from "../ports.ts";
import { ok, type Result } from "../refusal.ts";
import type { Traces } from "../traces.ts";
import { AlarmSchedule } from "../alarm-schedule.ts";
import type { Slot } from "../slot.ts";
import type { LeaseKind } from "./lease-kind.ts";
import type { ShardLinks } from "./shard-links.ts";
import type { Sightings } from "./sightings.ts";
import { shardsOf } from "../placement.ts";
import { decodeExecutions } from "./executions.ts";
import { msOf, type Positions } from "./position.ts";
import type { LedgerStore, UnappliedRow } from "./store.ts";
import type { LeaseRow } from "./lease-table.ts";

/**
 * The largest number of open decisions in memory, besides those of the transaction that is being written. The
 * others stay in their rows until there is room.
 */
const MAX_TRACKED = 10_000;
/** The number of decisions that one alarm delivers. */
const DECISIONS_PER_ALARM = 500;
/** The pause after the first failed delivery. It doubles up to `maxBackoffMs`. */
const FIRST_PAUSE_MS = 1_000;
/** Leases are examined this long after a decision: once for all decisions made meanwhile. */
const ADVANCE_AFTER_MS = 5_000;
/** The rows that one transaction notes something for, and the transactions of one alarm. */
const STEP_ROWS = 1_000;
const MAX_STEPS = 20;
/** The largest number of applied decisions in memory: as many as one alarm can note. */
const MAX_APPLIED = STEP_ROWS * MAX_STEPS;

interface OpenDecision extends UnappliedRow {
  dueAtMs: number;
  pauseMs: number;
  /** The row as it was decided, for the first delivery. Later deliveries read it again. */
  row: LeaseRow | undefined;
  /** Somebody waits for the names: the decision waits for no begin (N1). */
  isAwaited: boolean;
  /**
   * The messages that were not confirmed yet, by `SentDecision.key`. Undefined after a restart and after a
   * change of the placement: then the decision is sent to all of its shards again.
   */
  remaining: Set<string> | undefined;
  /** The placement with which `remaining` was made. */
  placement: Placement | undefined;
  underWay: Promise<void> | undefined;
}

interface Needs {
  readonly cell: string;
  readonly ports: Ports;
  readonly limits: Limits;
  readonly store: LedgerStore;
  readonly positions: Positions;
  readonly links: ShardLinks;
  readonly sightings: Slot<Sightings>;
  readonly kinds: Slot<LeaseKind>;
}

/**
 * Delivers decisions to their shards, with retries that never end (C3). A decision is open from the
 * transaction that makes it until every shard has confirmed it. Some seconds later, the leases since the last
 * time are examined, in one transaction: those that are granted, or whose decision is open, are pending from
 * then on, and `applied` stores how far this has got (S2). So a start finds what is unfinished among what is
 * pending or newer than that. It sends the newer decisions again, which has no effect where they were applied
 * before (C2).
 */
export class Deliveries {
  readonly #part: Needs;
  readonly #open = new Map<string, OpenDecision>();
  /** Those of them that wait for the alarm: they are durable and are not being sent. */
  readonly #idle = new Set<OpenDecision>();
  /** The granted leases that shards have asked about, so there are no more of them than open leases. */
  readonly #asked = new Set<string>();
  /**
   * Decisions that every shard has confirmed, whose rows do not say so: their leases are pending, or an
   * earlier instance has decided them. With the positions of their leases.
   */
  readonly #applied = new Map<string, number>();
  /**
   * All open decisions of leases created up to this position are in memory. There may be more in the rows:
   * decisions that were not loaded yet, or for which there was no room.
   */
  #loadedThrough = 0;
  /** The last position of earlier instances. */
  readonly #before: number;
  /** The position of the last decision. Until leases are examined up to there, there is work to do. */
  #lastChange: number;
  readonly #alarm: AlarmSchedule;

  constructor(part: Needs) {
    this.#part = part;
    this.#alarm = new AlarmSchedule(part.ports.alarm, part.ports.clock);
    this.#before = part.positions.last;
    this.#lastChange = part.store.lastUnexamined();
    this.#load();
  }

  /**
   * Runs before an instance answers its first message: the previous instance may have left open decisions,
   * and the platform may have lost their alarm (M3).
   */
  async start(): Promise<void> {
    await this.#alarm.load();
    this.#rearm();
  }

  /** The open decisions in memory. At least 1 if there may be more of them in the rows. */
  get unapplied(): number {
    return Math.max(this.#open.size, this.#loadedThrough === Infinity ? 0 : 1);
  }

  /** Whether this instance, or the next one, delivers a decision of a pending lease (C3). */
  willDeliver({ lease, created_position: created }: UnappliedRow): boolean {
    const isLaterLoaded = created > this.#loadedThrough;
    return this.#open.has(lease) || this.#applied.has(lease) || isLaterLoaded;
  }

  /** Must be called in the transaction that decides a lease. The alarm will examine it (S2). */
  noteChange(position: number): void {
    this.#lastChange = position;
    this.wakeWithin(ADVANCE_AFTER_MS);
  }

  /** The shards that have not confirmed a decision. Null: this instance has not sent it, or all have. */
  unconfirmedShards(lease: string): number | null {
    return this.#open.get(lease)?.remaining?.size ?? null;
  }

  /** The age of the oldest open decision in memory, which has the smallest position. 0 if there is none. */
  oldestMs(nowMs: number): number {
    let first = Infinity;
    for (const { position } of this.#open.values()) first = Math.min(first, position);
    return first === Infinity ? 0 : Math.max(0, nowMs - msOf(first));
  }

  /** Remembers that a shard has asked about a granted lease: somebody may wait for its names. */
  noteAsked(lease: string): void {
    this.#asked.add(lease);
  }

  /**
   * Must be called in the transaction that decides. It sets the alarm for the delivery. Nothing is sent
   * before `deliver` is called, when the decision is durable (C2).
   *
   * @param isAwaited whether somebody waits for the names
   */
  track(row: LeaseRow, isAwaited = false): void {
    const dueAtMs = this.#part.ports.clock.now() + ADVANCE_AFTER_MS;
    const open = openDecision(row, dueAtMs);
    open.row = row;
    // About older leases, shards may have asked an earlier instance.
    const isAsked = this.#asked.delete(row.lease) || row.created_position <= this.#before;
    open.isAwaited = isAwaited || isAsked;
    this.#open.set(row.lease, open);
    this.#applied.delete(row.lease);
    this.noteChange(row.position);
  }

  /**
   * Sends the decision once to every shard that has not confirmed it. Resolves when each has answered or
   * failed. The alarm retries the failed ones. Without room for one more delivery, it resolves at once, and
   * the alarm delivers the decision.
   *
   * @param traces the spans of the call that decided; later deliveries belong to no call
   */
  deliver(lease: string, traces?: Traces): Promise<void> {
    const open = this.#open.get(lease) ?? this.#reopen(lease);
    if (open === undefined) return Promise.resolve();
    if (open.underWay !== undefined) return open.underWay;
    if (!this.#makeRoomFor(open)) return Promise.resolve();
    this.#idle.delete(open);
    open.underWay = this.#deliverOnce(open, traces).finally(() => {
      open.underWay = undefined;
      if (this.#open.get(lease) === open) this.#idle.add(open);
    });
    return open.underWay;
  }

  /**
   * Makes room for the delivery of a decision, whose row is durable. Returns false if there is none: the
   * decision then waits for the alarm. Decisions are never refused (C6), so memory is limited here. What was
   * not examined yet stays: its row does not say that it is open.
   */
  #makeRoomFor(open: OpenDecision): boolean {
    for (const idle of this.#idle) {
      if (this.#open.size <= MAX_TRACKED) break;
      if (this.#isPending(idle)) this.#leaveInRow(idle);
    }
    if (this.#open.size <= MAX_TRACKED || !this.#isPending(open)) return true;
    this.#leaveInRow(open);
    return false;
  }

  /** Removes a decision from memory. It is loaded from its row when there is room again. */
  #leaveInRow(open: OpenDecision): void {
    this.#open.delete(open.lease);
    this.#idle.delete(open);
    this.#loadedThrough = Math.min(this.#loadedThrough, open.created_position - 1);
  }

  /** Whether a row says that its decision is open. */
  #isPending({ created_position: created }: UnappliedRow): boolean {
    return created <= this.#part.store.through;
  }

  /** Loads a decision that had no room in memory, because a caller has repeated it. */
  #reopen(lease: string): OpenDecision | undefined {
    if (this.#loadedThrough === Infinity || this.#applied.has(lease)) return undefined;
    const row = this.#part.store.find(lease);
    // A decision of a lease at or before `#loadedThrough` that is not in `#open` was confirmed.
    if (row?.decided !== 1 || row.pending === 0 || row.created_position <= this.#loadedThrough)
      return undefined;
    const open = openDecision(row, this.#part.ports.clock.now());
    this.#open.set(lease, open);
    return open;
  }

  async #deliverOnce(open: OpenDecision, traces: Traces): Promise<void> {
    let decisions: SentDecision[];
    const { placement } = this.#part.links;
    try {
      decisions = this.#decisionsOf(open.row ?? this.#part.store.find(open.lease));
      open.row = undefined;
    } catch (error) {
      // A row that this version cannot read must not block the other decisions.
      this.#part.ports.log("decision_unreadable", {
        lease: open.lease,
        error: error instanceof Error ? error.message : String(error),
      });
      this.#postpone(open);
      return;
    }
    if (open.placement !== placement) open.remaining = undefined;
    open.placement = placement;
    const remaining = (open.remaining ??= new Set(decisions.map(({ key }) => key)));
    const confirmations = decisions.map(async ({ key, shard, decision, ops }) => {
      if (!remaining.has(key)) return;
      const signal = open.isAwaited ? { isOver: false } : undefined;
      const answer = await this.#part.links.decide(shard, decision, ops, signal, traces);
      if (answer.kind === "ok") remaining.delete(key);
    });
    await Promise.all(confirmations);
    // What was confirmed before a change of the placement has moved with its names (G6).
    if (remaining.size > 0 && this.#part.links.placement !== placement)
      return this.#deliverOnce(open, traces);
    if (remaining.size > 0) return this.#postpone(open);
    // Without room in `#applied`, the decision is sent once more later on, which has no effect (C2).
    if (this.#applied.size >= MAX_APPLIED) this.#leaveInRow(open);
    else if (this.#isPending(open) || open.position <= this.#before)
      this.#applied.set(open.lease, open.created_position);
    this.#open.delete(open.lease);
    this.#alarm.setBy(this.#part.ports.clock.now() + ADVANCE_AFTER_MS);
  }

  /**
   * Returns the decisions for each shard that may have a hold of a decided lease: the one that granted it,
   * and those that its names may have by now (G6). None for a fence, which has no holds.
   */
  #decisionsOf(row: LeaseRow | undefined): SentDecision[] {
    if (row === undefined || row.state === "GRANTED") return [];
    // A hold of something else stays where it was granted: no shard hands names over while it has one (G10).
    if (row.transfer !== null)
      return decisionsOf(this.#part.cell, row, row.state, 0, this.#part.kinds.current.told(row.transfer));
    return decisionsOf(this.#part.cell, row, row.state, shardsOf(this.#part.links.placement));
  }

  #postpone(open: OpenDecision): void {
    open.dueAtMs = this.#part.ports.clock.now() + open.pauseMs * (1 + this.#part.ports.randomness.fraction());
    open.pauseMs = Math.min(open.pauseMs * 2, this.#part.limits.maxBackoffMs);
    this.#alarm.setBy(open.dueAtMs);
  }

  /** Makes sure that the alarm rings within `delayMs`. */
  wakeWithin(delayMs: number): void {
    this.#alarm.setBy(this.#part.ports.clock.now() + delayMs);
  }

  /**
   * Runs at each alarm: delivers the decisions that are due, and examines the leases since the last time. The
   * work is bounded. A call at any time, and a repeated call, does no harm.
   */
  async deliverDue(commits: GroupCommit): Promise<void> {
    this.#alarm.markRung();
    try {
      const now = this.#part.ports.clock.now();
      const due = [...this.#idle].filter((open) => this.#dueAtMs(open, now) <= now);
      await Promise.all(due.slice(0, DECISIONS_PER_ALARM).map(({ lease }) => this.deliver(lease)));
      // What is applied meanwhile waits for the next alarm, so that it shares a transaction.
      for (let step = 0, isEnd = false; step < MAX_STEPS && !isEnd && this.#hasToAdvance(); step += 1) {
        const advanced = await commits.submit("advance_applied", () => this.#advance(), {
          weight: STEP_ROWS,
        });
        isEnd = !advanced.ok || advanced.value.isEnd;
      }
      if (this.#open.size < MAX_TRACKED / 2) this.#load();
    } finally {
      this.#rearm();
    }
  }

  #hasToAdvance(): boolean {
    return (
      this.#applied.size > 0 ||
      this.#lastChange > this.#part.store.through ||
      !this.#part.sightings.current.isStored ||
      this.#part.store.times.isBehind(this.#part.ports.clock.now())
    );
  }

  /**
   * Notes which leases are pending, and how far they were examined: some of them, if there are many. Runs
   * inside a transaction.
   */
  #advance(): Result<{ isEnd: boolean }> {
    const { store, positions, sightings, ports } = this.#part;
    const { through } = store;
    store.times.note(ports.clock.now(), positions.last);
    const applied = [...this.#applied].filter(([, created]) => created <= through).slice(0, STEP_ROWS);
    store.setPending(
      applied.map(([, created]) => created),
      0,
    );
    for (const [lease] of applied) this.#applied.delete(lease);
    const known = new Set(this.#applied.values());
    const open = [...this.#open.values()].filter((each) => !this.#isPending(each));
    const unfinished = new Set([
      ...store.unexamined(this.#before, STEP_ROWS + 1 + known.size),
      ...open.map((each) => each.created_position),
    ]);
    const pending = [...unfinished].filter((created) => !known.has(created)).toSorted((a, b) => a - b);
    const next = pending[STEP_ROWS];
    store.setPending(pending.slice(0, STEP_ROWS), 1);
    // What is not pending is not told to the shards again, so what was seen of them is stored with it (H3).
    const { last } = positions;
    store.setApplied({ through: next === undefined ? last : next - 1, last }, sightings.current.stored());
    for (const [lease, created] of this.#applied)
      if (created > through && created <= store.through) this.#applied.delete(lease);
    return ok({ isEnd: next === undefined && this.#applied.size === 0 });
  }

  /** Keeps an alarm set while there is work (M3). */
  #rearm(): void {
    const now = this.#part.ports.clock.now();
    if (this.#hasToAdvance()) this.#alarm.setBy(now + ADVANCE_AFTER_MS);
    let next = Infinity;
    for (const open of this.#open.values()) {
      next = Math.min(next, this.#idle.has(open) ? this.#dueAtMs(open, now) : now + ADVANCE_AFTER_MS);
    }
    if (next !== Infinity) this.#alarm.setBy(next);
  }

  /** Returns when a decision is due. If that is later than any pause can end, the clock went back: now. */
  #dueAtMs({ dueAtMs }: OpenDecision, nowMs: number): number {
    const longestPauseMs = 2 * Math.max(this.#part.limits.maxBackoffMs, ADVANCE_AFTER_MS);
    return dueAtMs > nowMs + longestPauseMs ? nowMs : dueAtMs;
  }

  #load(): void {
    if (this.#loadedThrough === Infinity) return;
    const rows = this.#part.store.unapplied(this.#loadedThrough, this.#before, MAX_TRACKED);
    const now = this.#part.ports.clock.now();
    for (const row of rows) {
      if (this.#open.has(row.lease) || this.#applied.has(row.lease)) continue;
      if (this.#open.size >= MAX_TRACKED) {
        this.#loadedThrough = row.created_position - 1;
        return;
      }
      const open = openDecision(row, now);
      this.#open.set(row.lease, open);
      this.#idle.add(open);
    }
    this.#loadedThrough = rows.length < MAX_TRACKED ? Infinity : (rows.at(-1)?.created_position ?? Infinity);
  }
}

const openDecision = (
  { lease, created_position, position }: UnappliedRow,
  dueAtMs: number,
): OpenDecision => ({
  lease,
  created_position,
  position,
  dueAtMs,
  pauseMs: FIRST_PAUSE_MS,
  row: undefined,
  isAwaited: false,
  remaining: undefined,
  placement: undefined,
  underWay: undefined,
});

/** A decision for the holds of one execution that one shard has. */
interface SentDecision {
  /** Identifies it among those of the lease: the shard that granted the holds, and the one that has them. */
  key: string;
  shard: number;
  decision: Decision;
  /** The ops of the lease. */
  ops: number;
}

/**
 * Returns what tells each shard that may have a hold of a lease how it ends.
 *
 * @param shardsNow how many shards there are now: names may have moved to those added since the grant
 */
export function decisionsOf(
  cell: string,
  { lease, incarnation, counter, epochs, shards, creates, destroys, replaces }: LeaseRow,
  outcome: Decision["outcome"],
  shardsNow: number,
  ofKind: Partial<Decision> = {},
): SentDecision[] {
  if (epochs === null) return [];
  const decided = { cell, lease, incarnation, counter, outcome };
  const added = Array.from({ length: Math.max(0, shardsNow - shards) }, (_, index) => shards + index);
  return [...decodeExecutions(epochs)].flatMap(([grantedBy, { epoch }]) =>
    [grantedBy, ...added].map((shard) => ({
      key: `${grantedBy}>${shard}`,
      shard,
      ops: creates + destroys + replaces || 1,
      decision: { ...decided, epoch, ...(shard === grantedBy ? {} : { grantedBy }), ...ofKind },
    })),
  );
}
