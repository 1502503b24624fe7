import type { Slot } from "../../kernel/slot.ts";
import type { Standing } from "../../kernel/standing.ts";
import { ask } from "../../kernel/ask.ts";
import { fanOut } from "../../kernel/fan-out.ts";
import type { GroupCommit } from "../../kernel/group-commit.ts";
import type {
  AbortedGrowth,
  ConcludedGrowth,
  Growth,
  GrowthProgress,
  GrowthStep,
  HandedOver,
  MovedName,
  Receive,
} from "./messages.ts";
import type { Instances } from "../../kernel/instances.ts";
import type { HookLists } from "../../kernel/half.ts";
import type { KeptCursor, ShardHooks } from "../../kernel/shard/hooks.ts";
import type { Limits } from "../../../common/limits.ts";
import type { BucketKey, HistoryPoint } from "../../kernel/messages.ts";
import type { Peers } from "../../kernel/methods.ts";
import { deleteMeta, readMeta, writeMeta } from "../../kernel/meta.ts";
import { placementOf, shardOf } from "../../kernel/placement.ts";
import { placementMismatch, type PlacementGuard } from "../../kernel/placement-guard.ts";
import type { Ports } from "../../kernel/ports.ts";
import { ok, refused, type Refusal, type Result } from "../../kernel/refusal.ts";
import { FIRST_NAME, type ChangedName, type MovedNames, type NameCursor } from "./moved-names.ts";
import type { WideHolds } from "../../kernel/shard/wide-holds.ts";
import type { ShardLog } from "../../kernel/shard/shard-log.ts";

/** The names that one message has, and that one transaction deletes. */
const PAGE_ROWS = 250;

const FIRST_PAST_CLAIM: KeptCursor = [0, -1, "", 0];

/** How often a message is repeated at once, because the target deletes an earlier copy first. */
const MOST_REPEATS = 100;

/** What this shard knows of a shard that gets names from it. */
interface Target {
  /** The messages with names that it has confirmed. */
  confirmed: number;
  /** The newest point of it that was seen. */
  seen: HistoryPoint | null;
  /** The point of this shard that it has told, and this shard has checked (H5). */
  checked: HistoryPoint | null;
  /** It serves what it got. */
  isActive: boolean;
}

export type StoredGrowth = Pick<Growth, "id" | "from" | "to" | "position"> & {
  copy: string;
  /** The first pass. Null: it has ended. */
  cursor: NameCursor | null;
  copied: number;
  /** Whether this shard has changed to the new placement. From then on, it serves nothing that moves. */
  isFenced: boolean;
  targets: Record<number, Target>;
  /** How far moved names are deleted. Null: all of them are, and their past claims come next. */
  clean: NameCursor | null;
  cleanPast: KeptCursor;
  cleaned: number;
  /** Whether all that has moved is deleted. The growth is kept, because an earlier loss may show (G7). */
  isCleaned: boolean;
};

/** What one round sends. */
interface Batch {
  copy: string;
  byTarget: Map<number, MovedName[]>;
  /** Names that were sent before and have changed. */
  changed: ChangedName[];
  /** The cursor afterwards. */
  next: NameCursor | null;
  /** The names of the first pass. */
  copied: number;
  rows: number;
  /** Whether no name that has changed is left behind these. */
  isRest: boolean;
  point: HistoryPoint | null;
}

/** How a message to a target ended. `stopped`: nothing more can be sent to it now. */
type Sent = "received" | "active" | "restart" | "stopped";

interface Needs {
  readonly index: number;
  readonly ports: Pick<Ports, "sql" | "clock" | "randomness" | "log">;
  readonly limits: Limits;
  readonly names: MovedNames;
  readonly wide: Slot<Pick<WideHolds, "size">>;
  readonly hooks: Pick<HookLists<ShardHooks>, "moved">;
  readonly log: ShardLog;
  readonly instances: Instances;
  readonly standing: Slot<Standing>;
  readonly commits: GroupCommit;
  readonly peers: Pick<Peers, "shard" | "directory">;
  readonly placementGuard: PlacementGuard;
}

/**
 * A shard that gives names to others (G4, G6, G7). Without a growth, it does nothing.
 *
 * Each step reads some names, sends them, and then stores how far it is. A name that changes after it was
 * read is sent again.
 */
export class GrowthSource {
  readonly #part: Needs;
  #growth: StoredGrowth | undefined;
  #lastChange: number;
  /** Whether every target has said, in one step, that it has all that it was sent. */
  #isChecked = false;
  #working: Promise<void> | undefined;
  /** The messages that have ended a growth. */
  #aborts = 0;

  constructor(part: Needs) {
    this.#part = part;
    const stored = readMeta(part.ports.sql, "growth_source");
    if (typeof stored === "string") this.#growth = JSON.parse(stored) as StoredGrowth;
    this.#lastChange = part.names.lastChange();
  }

  /** Whether all rows here are names that this shard serves. */
  get isWhole(): boolean {
    return this.#growth?.isFenced !== true || this.#growth.isCleaned;
  }

  /**
   * Whether names wait here that nobody serves, or rows are left to delete. The hand-over waits until no
   * range hold is left (G10).
   */
  get hasWork(): boolean {
    const growth = this.#growth;
    if (
      growth?.isFenced !== true ||
      this.#isDone(growth) ||
      this.#part.standing.current.stopped !== undefined
    )
      return false;
    return this.#isHandedOver(growth) || this.#part.wide.current.size === 0;
  }

  /** Whether names are copied, handed over or deleted. Then no transfer can get a range hold (G10). */
  get isRunning(): boolean {
    return this.#growth?.isCleaned === false;
  }

  serves(key: BucketKey): boolean {
    return this.isWhole || this.#growth === undefined || !this.#moves(key, this.#growth);
  }

  /** The shards that get names from this one since its placement has changed. */
  get newShards(): number[] {
    return this.#growth?.isFenced === true ? Object.keys(this.#growth.targets).map(Number) : [];
  }

  /** What a new shard may lack to which this one has handed over. Undefined: it has not. */
  handedOverTo(shard: number): HandedOver | undefined {
    if (this.#givesTo.includes(shard)) return undefined;
    return { point: this.#part.instances.point ?? null, ledgers: this.#part.log.sightings.current.all };
  }

  /** The shards that have not confirmed yet that they serve what they get from this one. */
  get #givesTo(): number[] {
    return Object.entries(this.#growth?.targets ?? {}).flatMap(([shard, { isActive }]) =>
      isActive ? [] : [Number(shard)],
    );
  }

  get progress(): GrowthProgress {
    const growth = this.#growth;
    if (growth === undefined)
      return {
        shard: this.#part.index,
        growth: null,
        state: "none",
        copied: 0,
        waiting: 0,
        cleaned: 0,
        waitsFor: this.#waitsFor,
      };
    const { id, copied, cleaned, isFenced, cursor } = growth;
    const waiting = this.#part.names.countChanged();
    const state = isFenced
      ? this.#isHandedOver(growth)
        ? growth.isCleaned
          ? "done"
          : "cleaning"
        : "pushing"
      : cursor === null && this.#isChecked
        ? "copied"
        : "copying";
    return { shard: this.#part.index, growth: id, state, copied, waiting, cleaned, waitsFor: this.#waitsFor };
  }

  get #waitsFor(): GrowthProgress["waitsFor"] {
    if (this.#part.wide.current.size > 0) return "transfer";
    const { stopped, incomplete } = this.#part.standing.current;
    return (stopped ?? incomplete) === undefined ? null : "reconciliation";
  }

  /** Must be called in the transaction that makes or ends a hold on a name. */
  changed(key: BucketKey): void {
    const growth = this.#growth;
    if (growth === undefined || growth.isFenced || !this.#moves(key, growth)) return;
    this.#lastChange += 1;
    this.#part.names.noteChange(key, this.#lastChange);
  }

  /** Does some of the work. Calls at the same time share one step. */
  async step({ growth, rows }: GrowthStep): Promise<Result<GrowthProgress>> {
    if (growth.phase === "copying" && this.#part.wide.current.size > 0)
      return blockedByTransfer(this.#part.index);
    if (growth.phase === "aborted") await this.#abort(growth);
    else if (growth.phase === "concluded") await this.#conclude(growth);
    else if (growth.phase !== "cut") await this.#prepare(growth);
    else
      await this.#part.placementGuard.learn(
        placementMismatch(placementOf(growth.to), placementOf(growth.from)),
      );
    await this.work(rows);
    const refusal = this.#part.standing.current.stopped;
    if (refusal !== undefined) return { ok: false, refusal };
    const { progress } = this;
    if (progress.state !== "none" || (growth.phase !== "cut" && growth.phase !== "concluded"))
      return ok(progress);
    const isDone = this.#part.placementGuard.placement === placementOf(growth.to);
    return ok(isDone ? { ...progress, growth: growth.id, state: "done" } : progress);
  }

  /** Begins a growth that the directory has. */
  async #prepare(growth: Growth): Promise<void> {
    if (this.#growth?.id === growth.id || (this.#growth?.isFenced === true && !this.#growth.isCleaned))
      return;
    const aborts = this.#aborts;
    if (!(await this.#hasStarted(growth))) return;
    await this.#part.commits.submit("copy", () => {
      // Another message may have changed the placement during the wait (M1), or have ended this growth.
      if (this.#aborts !== aborts || this.#part.wide.current.size > 0) return;
      if (this.#part.placementGuard.placement !== placementOf(growth.from)) return;
      if (this.#growth === undefined || isEarlier(this.#growth, growth)) this.#begin(growth, false);
    });
  }

  /** Asks the directory whether a growth runs. */
  async #hasStarted({ id, from }: Growth): Promise<boolean> {
    const { ports, limits, peers } = this.#part;
    const answer = await ask(ports.clock, limits.inquiryTimeoutMs, () =>
      peers.directory().confirm({ placement: placementOf(from) }),
    );
    return answer.kind === "ok" && answer.value.growth?.id === id;
  }

  /** Drops what an aborted growth has left. Another one may have begun meanwhile. */
  async #abort({ id }: AbortedGrowth): Promise<void> {
    this.#aborts += 1;
    await this.#part.commits.submit("copy", () => {
      const growth = this.#growth;
      if (growth?.id === id && !growth.isFenced) this.#forget();
    });
  }

  /** Forgets a growth, once every ledger has told what it has seen of this shard (G7). */
  async #conclude({ id }: ConcludedGrowth): Promise<void> {
    await this.#part.commits.submit("clean", () => {
      const growth = this.#growth;
      if (growth?.id === id && this.#isDone(growth)) this.#forget();
    });
  }

  #begin({ id, from, to, position }: Growth, isFenced: boolean): void {
    this.#isChecked = false;
    this.#part.names.forgetAllChanges();
    this.#store({
      id,
      from,
      to,
      position,
      copy: this.#part.ports.randomness.uuid(),
      cursor: FIRST_NAME,
      copied: 0,
      isFenced,
      targets: Object.fromEntries(
        Array.from({ length: to - from }, (_, index) => [from + index, newTarget(null)]),
      ),
      clean: FIRST_NAME,
      cleanPast: FIRST_PAST_CLAIM,
      cleaned: 0,
      isCleaned: false,
    });
  }

  /**
   * Must be called in the transaction that changes to the new placement. From then on, this shard serves
   * nothing that moves, and all that routers keep of it counts as changed (Q3).
   */
  fence(growth: Growth): void {
    if (this.#growth?.id === growth.id) this.#store({ ...this.#growth, isFenced: true });
    else this.#begin(growth, true);
    // A shard that is lost changes nothing of its history (H4).
    if (this.#part.standing.current.stopped === undefined) this.#part.log.reset();
  }

  /** Must be called in the transaction that accepts a loss (H6). What is left is copied again. */
  lossAccepted(): void {
    if (this.#growth !== undefined) this.#restart(this.#growth);
  }

  #restart(growth: StoredGrowth): void {
    this.#isChecked = false;
    this.#part.names.forgetAllChanges();
    const targets = Object.entries(growth.targets).map(([shard, target]): [string, Target] => [
      shard,
      target.isActive ? target : newTarget(target.seen),
    ]);
    this.#store({
      ...growth,
      copy: this.#part.ports.randomness.uuid(),
      cursor: growth.isCleaned ? null : FIRST_NAME,
      copied: growth.isCleaned ? growth.copied : 0,
      targets: Object.fromEntries(targets),
    });
  }

  /** Reads or sends up to `rows` names, and deletes no more than `mostDeleted` of them. */
  work(rows: number, { mostDeleted = rows } = {}): Promise<void> {
    this.#working ??= this.#work(rows, mostDeleted).finally(() => {
      this.#working = undefined;
    });
    return this.#working;
  }

  async #work(rows: number, mostDeleted: number): Promise<void> {
    const asked = new Set<number>();
    let cleaned = 0;
    for (
      let left = rows;
      left > 0 && this.#growth !== undefined && this.#part.standing.current.stopped === undefined;
    ) {
      const growth = this.#growth;
      if (growth.isFenced && this.#isHandedOver(growth)) {
        if (growth.isCleaned) return;
        if (cleaned >= mostDeleted) return;
        const read = await this.#clean(growth, Math.min(left, PAGE_ROWS));
        if (!read.ok) return;
        cleaned += read.value;
        left -= read.value;
        continue;
      }
      const batch = this.#read(growth, Math.min(left, PAGE_ROWS));
      left -= batch.rows;
      const isEmpty = batch.rows === 0 && growth.cursor === null;
      // Nothing that moves changes after the cut, so the rest of the changes is the end of the copy.
      const isLast = growth.isFenced && growth.cursor === null && batch.isRest;
      // Names may change all the time, so the targets that get none of this batch are asked with it.
      const mayAsk = growth.isFenced ? isLast : growth.cursor === null;
      for (const shard of mayAsk ? this.#givesTo : [])
        if (!batch.byTarget.has(shard) && (growth.isFenced || !asked.has(shard)))
          batch.byTarget.set(shard, []);
      if (isEmpty && batch.byTarget.size === 0) {
        this.#isChecked = true;
        return;
      }
      // After a loss, range holds may be back. The transfers rewrite their claims first (G10).
      if (this.#part.wide.current.size > 0 && !growth.isCleaned) return;
      // What is told of this shard must be durable (H2).
      await this.#part.ports.sql.flush();
      const sent = await fanOut([...batch.byTarget], this.#part.limits.fanOut, async ([shard, names]) => {
        asked.add(shard);
        return this.#send(batch, shard, names, isLast);
      });
      if (sent.includes("restart")) {
        await this.#part.commits.submit("copy", () => {
          if (this.#growth?.copy === batch.copy) this.#restart(this.#growth);
        });
        return;
      }
      if (sent.includes("stopped")) {
        this.#isChecked = false;
        return;
      }
      await this.#advance(batch);
      if (this.#growth?.copy === batch.copy && growth.cursor === null)
        this.#isChecked ||= this.#givesTo.every((shard) => asked.has(shard));
    }
  }

  /** Reads the next names of the first pass, and then those that have changed since they were read. */
  #read(growth: StoredGrowth, limit: number): Batch {
    const { copy, cursor } = growth;
    const point = this.#part.instances.pointOfRows(this.#part.log.position) ?? null;
    const page = cursor === null ? undefined : this.#part.names.page(cursor, limit);
    const changed = page === undefined ? this.#part.names.changed(limit) : [];
    // A shard that went back may have rows of an earlier growth that it has handed over (G4).
    const keys = (page?.keys ?? changed).filter(
      (key) => this.#targetOf(key, growth) >= growth.from && this.#sourceOf(key, growth) === this.#part.index,
    );
    const names = this.#part.names.read(keys);
    return {
      copy,
      byTarget: Map.groupBy(names, (name) => this.#targetOf(name, growth)),
      changed,
      next: page?.next ?? null,
      copied: page === undefined ? 0 : names.length,
      rows: page?.keys.length ?? changed.length,
      isRest: page === undefined && changed.length < limit,
      point,
    };
  }

  /** Stores that a batch was sent. */
  async #advance(batch: Batch): Promise<void> {
    if (batch.rows === 0 && this.#growth?.cursor === null) return;
    await this.#part.commits.submit(
      "copy",
      () => {
        const growth = this.#growth;
        if (growth?.copy !== batch.copy) return;
        this.#part.names.forgetChanges(batch.changed);
        this.#store({ ...growth, cursor: batch.next, copied: growth.copied + batch.copied });
      },
      { weight: batch.changed.length + 8 },
    );
  }

  async #send(batch: Batch, shard: number, names: readonly MovedName[], isComplete: boolean): Promise<Sent> {
    for (let repeat = 0; repeat < MOST_REPEATS; repeat += 1) {
      const growth = this.#growth;
      const target = growth?.targets[shard];
      if (
        growth?.copy !== batch.copy ||
        target === undefined ||
        this.#part.standing.current.stopped !== undefined
      )
        return "stopped";
      const answer = await ask(this.#part.ports.clock, this.#part.limits.exchangeTimeoutMs, () =>
        this.#part.peers.shard(shard).receive(this.#message(growth, target, batch, names, isComplete)),
      );
      if (answer.kind !== "ok" || this.#growth?.copy !== batch.copy) return "stopped";
      const { state, point, seen } = answer.value;
      if (seen !== null && this.#part.standing.current.admit(seen, `shard ${shard}`) !== undefined)
        return "stopped";
      // A target that lacks something may have gone back to before its first change (G5).
      const newest = state === "unknown" ? point : (point ?? target.seen);
      const now: Target = { ...target, seen: newest, checked: seen ?? target.checked };
      if (state === "received" && names.length > 0) now.confirmed += 1;
      if (state === "active") {
        if (!this.#growth.isFenced) {
          // The target was told that this shard serves these names no more: this shard went back.
          const to = placementOf(growth.to);
          await this.#part.placementGuard.learn(placementMismatch(to, placementOf(growth.from)));
          return "stopped";
        }
        now.isActive = true;
      }
      const isSame = JSON.stringify(now) === JSON.stringify(target);
      await (isSame ? undefined : this.#storeTarget(batch, shard, now));
      if (state === "unknown") return "restart";
      if (state === "received" || state === "active") return state;
    }
    return "stopped";
  }

  #storeTarget(batch: Batch, shard: number, target: Target): Promise<unknown> {
    return this.#part.commits.submit("copy", () => {
      if (this.#growth?.copy !== batch.copy) return;
      this.#store({ ...this.#growth, targets: { ...this.#growth.targets, [shard]: target } });
    });
  }

  #message(
    { id, from, to, position, copy, isFenced }: StoredGrowth,
    { confirmed, seen, checked }: Target,
    { point }: Batch,
    names: readonly MovedName[],
    isComplete: boolean,
  ): Receive {
    return {
      placement: placementOf(isFenced ? to : from),
      ...(seen === null ? {} : { seen }),
      growth: { id, from, to, position },
      source: this.#part.index,
      copy,
      confirmed,
      point,
      checked,
      names: [...names],
      ledgers: isComplete ? this.#part.log.sightings.current.all : {},
      isComplete,
      isReconciling: this.#part.standing.current.incomplete !== undefined,
    };
  }

  /** Deletes names that other shards serve by now. Returns the number of rows that were read. */
  #clean(growth: StoredGrowth, limit: number): Promise<Result<number>> {
    return this.#part.commits.submit(
      "clean",
      () => {
        if (this.#growth?.id !== growth.id) return ok(limit);
        if (growth.clean === null) {
          const hasMoved = (key: BucketKey): boolean => this.#moves(key, growth);
          const [deleteMoved] = this.#part.hooks.moved;
          const next = deleteMoved?.(growth.cleanPast, limit, hasMoved) ?? null;
          if (next === null) this.#cleanedAll(this.#growth);
          else this.#store({ ...this.#growth, cleanPast: next });
          return ok(limit);
        }
        const { keys, next } = this.#part.names.page(growth.clean, limit);
        const moved = keys.filter((key) => this.#moves(key, growth));
        this.#part.names.delete(moved);
        this.#store({ ...this.#growth, clean: next, cleaned: this.#growth.cleaned + moved.length });
        return ok(Math.max(1, keys.length));
      },
      { weight: 2 * limit },
    );
  }

  #cleanedAll(growth: StoredGrowth): void {
    // A growth that this shard has missed gives no names to anybody.
    if (growth.to === growth.from) return this.#forget();
    this.#part.names.forgetAllChanges();
    this.#store({ ...growth, isCleaned: true });
  }

  #isDone(growth: StoredGrowth): boolean {
    return growth.isCleaned && this.#isHandedOver(growth);
  }

  #isHandedOver({ targets }: StoredGrowth): boolean {
    return Object.values(targets).every(({ isActive }) => isActive);
  }

  #targetOf({ type, canonical }: BucketKey, { to }: StoredGrowth): number {
    return shardOf(type, canonical, to);
  }

  #sourceOf({ type, canonical }: BucketKey, { from }: StoredGrowth): number {
    return shardOf(type, canonical, from);
  }

  #moves(key: BucketKey, growth: StoredGrowth): boolean {
    return this.#targetOf(key, growth) !== this.#part.index;
  }

  #store(growth: StoredGrowth): void {
    this.#growth = growth;
    writeMeta(this.#part.ports.sql, "growth_source", JSON.stringify(growth));
  }

  #forget(): void {
    this.#growth = undefined;
    this.#part.names.forgetAllChanges();
    deleteMeta(this.#part.ports.sql, "growth_source");
  }
}

/** A growth with a hand-over that is not finished is never replaced. */
const isEarlier = ({ position, isFenced, isCleaned }: StoredGrowth, than: Growth): boolean =>
  (!isFenced || isCleaned) && position < than.position;

const newTarget = (seen: HistoryPoint | null): Target => ({
  confirmed: 0,
  seen,
  checked: null,
  isActive: false,
});

const blockedByTransfer = (shard: number): { ok: false; refusal: Refusal } =>
  refused(
    "UNAVAILABLE",
    `a transfer holds a scope on shard ${shard}: the shard copies its names when the transfer has ended`,
    { retryAfterMs: 10_000 },
  );
