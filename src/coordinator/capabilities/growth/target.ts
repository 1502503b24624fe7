import type { Slot } from "../../kernel/slot.ts";
import type { Standing } from "../../kernel/standing.ts";
import type { AbortedGrowth, Growth, HandedOver, Receive, Received } from "./messages.ts";
import { isSamePoint, nextPoint } from "../../kernel/instances.ts";
import type { HookLists } from "../../kernel/half.ts";
import type { ShardHooks } from "../../kernel/shard/hooks.ts";
import type { BucketKey, HistoryPoint } from "../../kernel/messages.ts";
import { deleteMeta, readMeta, writeMeta } from "../../kernel/meta.ts";
import { placementOf, shardOf } from "../../kernel/placement.ts";
import type { PlacementGuard } from "../../kernel/placement-guard.ts";
import type { Ports } from "../../kernel/ports.ts";
import { ok, refused, type Result } from "../../kernel/refusal.ts";
import { FIRST_NAME, type MovedNames, type NameCursor } from "./moved-names.ts";
import type { ShardLog } from "../../kernel/shard/shard-log.ts";

/** What this shard has of one source. */
interface SourceCopy {
  copy: string;
  /** The messages with names that were received. */
  count: number;
  /** The newest point of the source that names were read at. Null: the source had made no change. */
  point: HistoryPoint | null;
  /** How far rows of an earlier copy are deleted. Null: all of them are. */
  wipe: NameCursor | null;
  /** Whether this shard serves what the source had. */
  isActive: boolean;
}

export type StoredGrowth = Pick<Growth, "id" | "from" | "to" | "position"> & {
  sources: Record<number, SourceCopy>;
};

/** The growth that was aborted last, of those that would have given names to this shard. */
export interface StoredAbort {
  position: number;
  /** How far its copies are deleted. Null: all of them are. */
  cursor: NameCursor | null;
}

/** The rows that one transaction reads to find those of an earlier copy (M7). */
export const WIPE_ROWS = 500;

interface Needs {
  readonly index: number;
  readonly ports: Pick<Ports, "sql" | "clock">;
  readonly names: MovedNames;
  readonly log: ShardLog;
  readonly standing: Slot<Standing>;
  readonly hooks: Pick<HookLists<ShardHooks>, "incomplete">;
  readonly placementGuard: PlacementGuard;
}

/**
 * A shard that gets names from others (G4, G5). It serves the names of a source only when the source has said
 * that it serves them no more, and that this shard has all of them. Without a growth, it does nothing.
 */
export class GrowthTarget {
  readonly #part: Needs;
  #growth: StoredGrowth | undefined;
  #aborted: StoredAbort | undefined;
  #hasChanged = false;

  constructor(part: Needs) {
    this.#part = part;
    const { sql } = part.ports;
    const stored = readMeta(sql, "growth_target");
    if (typeof stored === "string") this.#growth = JSON.parse(stored) as StoredGrowth;
    const aborted = readMeta(sql, "aborted_growth");
    if (typeof aborted === "string") this.#aborted = JSON.parse(aborted) as StoredAbort;
  }

  /** Whether this shard has all its names. */
  get isWhole(): boolean {
    return this.#growth === undefined;
  }

  /** Whether no placement with this shard was ever in force, so that all names here are copies (G5). */
  get hasOnlyCopies(): boolean {
    return this.#part.placementGuard.placement === undefined;
  }

  /** Whether copies of an aborted growth are left to delete. */
  get hasCopiesToDrop(): boolean {
    return (
      this.hasOnlyCopies &&
      this.#part.standing.current.stopped === undefined &&
      (this.#aborted?.cursor ?? null) !== null
    );
  }

  serves({ type, canonical }: BucketKey): boolean {
    if (this.#growth === undefined) return true;
    const { from, sources } = this.#growth;
    return sources[shardOf(type, canonical, from)]?.isActive === true;
  }

  /** The shards that have not handed over yet. */
  get missingSources(): number[] {
    if (this.#growth === undefined) return [];
    const { from, sources } = this.#growth;
    return [...Array(from).keys()].filter((source) => sources[source]?.isActive !== true);
  }

  /** Returns whether rows were changed since the last call. */
  takeChanged(): boolean {
    const hasChanged = this.#hasChanged;
    this.#hasChanged = false;
    return hasChanged;
  }

  /** Must be called in the transaction that confirms the first placement, if its growth still runs. */
  expect({ id, from, to, position }: Growth): void {
    if (this.#growth?.id === id || this.#part.index < from || this.#part.index >= to) return;
    this.#store({ id, from, to, position, sources: {} });
  }

  /**
   * Notes that a growth was aborted, so that no late message brings its names back, and deletes the next of
   * them (G1). Runs inside a transaction.
   */
  abort({ position }: AbortedGrowth): void {
    const isKnown = this.#aborted !== undefined && this.#aborted.position >= position;
    const isEarlier = this.#growth !== undefined && this.#growth.position > position;
    if (!this.hasOnlyCopies || isEarlier) return;
    if (!isKnown) {
      this.#forget();
      this.#storeAbort({ position, cursor: FIRST_NAME });
    }
    this.dropCopies();
  }

  /** Deletes the next copies of an aborted growth. Runs inside a transaction. */
  dropCopies(): void {
    if (!this.hasCopiesToDrop || this.#aborted === undefined) return;
    const { position, cursor } = this.#aborted;
    this.#storeAbort({ position, cursor: this.#delete(cursor, () => true) });
  }

  /**
   * Must be called in the transaction that accepts a loss (H6). Copies may lack something, so sources that
   * have not handed over send all of it again.
   */
  lossAccepted(): void {
    if (this.#growth === undefined) return;
    const active = Object.entries(this.#growth.sources).filter(([, { isActive }]) => isActive);
    this.#store({ ...this.#growth, sources: Object.fromEntries(active) });
  }

  /** Must be called in the transaction that gives up what a source has sent, because it was lost (G5). */
  giveUp(source: number, handedOver: HandedOver): void {
    if (this.#growth === undefined) return;
    const { sources } = this.#growth;
    sources[source] = { copy: "", count: 0, point: null, wipe: null, isActive: true };
    this.#takeOver(handedOver);
    this.#forgetIfComplete();
    if (this.#growth !== undefined) this.#store(this.#growth);
    this.#hasChanged = true;
  }

  /** Stores names. Runs inside a transaction. */
  receive(message: Receive): Result<Received> {
    const { growth, source, copy, point, checked, confirmed } = message;
    const current = this.#part.placementGuard.placement;
    if (current !== undefined && current !== placementOf(growth.to))
      return refused("FAILED_PRECONDITION", `shard ${this.#part.index} has placement ${current}`, {
        reason: "GROWTH_UNKNOWN",
      });
    // All that this shard was to get is here.
    if (current !== undefined && this.#growth === undefined) return this.#answer("active", point);
    const running = this.#growth;
    if (running !== undefined && running.id !== growth.id && running.position >= growth.position)
      return refused("FAILED_PRECONDITION", "a later growth has begun", { reason: "GROWTH_UNKNOWN" });
    if (this.#aborted !== undefined && this.#aborted.position >= growth.position)
      return refused("FAILED_PRECONDITION", "the growth was aborted", { reason: "GROWTH_UNKNOWN" });
    if (running?.id !== growth.id) this.#store({ ...growth, sources: {} });
    const known = this.#growth?.sources[source];
    if (known?.isActive === true) return this.#answer("active", point);
    if (known !== undefined && isOutdated(known.point, point, checked))
      return this.#answer("unchecked", known.point);
    const found = known?.copy === copy ? known : this.#begin(source, confirmed, copy, point);
    if (found === undefined || !isNext(found, message)) return this.#answer("unknown", known?.point ?? null);
    found.point = point;
    if (!this.#wipe(source, found)) return this.#changed("wiping", point);
    if (message.names.length > 0) {
      // A source that went back may have names that others have handed over (G4).
      const own = message.names.filter(
        ({ type, canonical }) => shardOf(type, canonical, growth.from) === source,
      );
      this.#part.names.write(
        own.map((name) => ({
          ...name,
          hold: name.hold === null ? null : { ...name.hold, granted_by: name.hold.granted_by ?? source },
        })),
      );
      found.count = confirmed + 1;
    }
    if (message.isComplete) return this.#activate(found, message);
    // A message without names only asks whether all is still here.
    return known === found && message.names.length === 0
      ? this.#answer("received", point)
      : this.#changed("received", point);
  }

  /** Begins a copy of a source. Undefined: this message is not the first one of its copy. */
  #begin(
    source: number,
    confirmed: number,
    copy: string,
    point: HistoryPoint | null,
  ): SourceCopy | undefined {
    if (confirmed > 0 || this.#growth === undefined) return undefined;
    const begun: SourceCopy = { copy, count: 0, point, wipe: FIRST_NAME, isActive: false };
    this.#growth.sources[source] = begun;
    return begun;
  }

  /** Deletes some rows that an earlier copy of the source has left. Returns whether none is left. */
  #wipe(source: number, copy: SourceCopy): boolean {
    const from = this.#growth?.from ?? 0;
    copy.wipe = this.#delete(copy.wipe, ({ type, canonical }) => shardOf(type, canonical, from) === source);
    return copy.wipe === null;
  }

  /** Deletes some of the next names. Returns where to continue. Null: there are no more. */
  #delete(from: NameCursor | null, isLeft: (key: BucketKey) => boolean): NameCursor | null {
    let cursor = from;
    for (let left = WIPE_ROWS; cursor !== null && left > 0;) {
      const { keys, next } = this.#part.names.page(cursor, left);
      left -= keys.length;
      this.#part.names.delete(keys.filter(isLeft));
      cursor = next;
    }
    return cursor;
  }

  /** From here on, this shard serves what the source had. */
  #activate(copy: SourceCopy, message: Receive): Result<Received> {
    const { growth, source, point, isReconciling } = message;
    copy.isActive = true;
    this.#takeOver(message);
    this.#part.placementGuard.adopt(placementOf(growth.to));
    // Names that the source has lost look free, and only their owners' verification may take them.
    if (isReconciling) this.#part.standing.current.inherit(`shard ${source}`);
    this.#forgetIfComplete();
    return this.#changed("active", point);
  }

  /**
   * The positions of this shard continue above those of the source, so that later owners have larger epochs
   * (E1).
   */
  #takeOver({ point, ledgers }: HandedOver): void {
    // A ledger that has forgotten the lease of a hold that moves must notice that here, too (H3, H4).
    for (const [cell, seen] of Object.entries(ledgers))
      this.#part.log.sightings.current.noteLater(cell, seen);
    this.#part.log.jumpTo(point?.position ?? 0);
    for (const incomplete of this.#part.hooks.incomplete) incomplete(this.#part.ports.clock.now());
  }

  #forgetIfComplete(): void {
    if (this.missingSources.length === 0) this.#forget();
  }

  #changed(state: Received["state"], point: HistoryPoint | null): Result<Received> {
    this.#hasChanged = true;
    if (this.#growth !== undefined) this.#store(this.#growth);
    return this.#answer(state, point);
  }

  /** The caller adds the point of this shard, once the transaction is durable. */
  #answer(state: Received["state"], seen: HistoryPoint | null): Result<Received> {
    return ok({ state, point: null, seen });
  }

  #storeAbort(aborted: StoredAbort): void {
    this.#aborted = aborted;
    this.#hasChanged = true;
    writeMeta(this.#part.ports.sql, "aborted_growth", JSON.stringify(aborted));
  }

  /** Each source of a growth begins with a copy, and deletes then what is left of an aborted one. */
  #store(growth: StoredGrowth): void {
    if (this.#aborted !== undefined && this.#aborted.cursor !== null)
      this.#storeAbort({ ...this.#aborted, cursor: null });
    this.#growth = growth;
    this.#hasChanged = true;
    writeMeta(this.#part.ports.sql, "growth_target", JSON.stringify(growth));
  }

  #forget(): void {
    this.#growth = undefined;
    deleteMeta(this.#part.ports.sql, "growth_target");
  }
}

/**
 * Whether names were read earlier than those that are stored, or by an incarnation that has not said that it
 * has the stored point (H5).
 */
const isOutdated = (known: HistoryPoint | null, point: HistoryPoint | null, checked: HistoryPoint | null) =>
  known !== null && (point === null || !isSamePoint(nextPoint(known, point, checked), point));

/** Whether all earlier messages of the copy were received. The answer to the last one may be lost. */
const isNext = ({ count }: SourceCopy, { confirmed }: Receive): boolean =>
  confirmed === count || confirmed === count - 1;
