import type { Envelope, HistoryPoint, Op } from "../../../kernel/messages.ts";
import type { ShardPoints } from "../messages.ts";
import type { Answer, Call, Interceptor } from "../../../objects/interceptor.ts";
import { shardName } from "../../../objects/identity.ts";

/** The most points that a witness remembers of one object. */
const MAX_POINTS = 8;

/** The most objects that a witness remembers: more than the cells and shards that a deployment can have. */
const MAX_OBJECTS = 1_300;

/**
 * Remembers the points of the objects that their answers have told, and adds them to later calls (H2). So a
 * part that went back in time is noticed although the caller that knows better is silent. The memory is lost
 * with its isolate: it makes the notice earlier, and no rule depends on it.
 */
export class Witness implements Interceptor {
  /** By the names of the objects. */
  readonly #seen = new Map<string, SeenPoints>();

  /** What a caller knows itself wins, because it may come from a cell that stores it. */
  before({ part }: Call, message: Envelope): Envelope {
    const seen = this.#seen.get(part)?.next();
    return { ...(seen === undefined ? {} : { seen }), ...this.#shardsOf(message), ...message };
  }

  after({ part, level, message }: Call, answer: Answer | undefined, { seen }: Envelope): void {
    if (answer?.point !== undefined) {
      this.#add(part, answer.point);
      // A part that has gone back in time also answers calls of the level `always`, so their success does not
      // mean that it has the point that they carried.
      const isCompared = answer.ok && message.seen === undefined && level !== "always";
      if (isCompared && seen !== undefined) this.#seen.get(part)?.accepted(seen, answer.point);
    }
    for (const [shard, point] of Object.entries(answer?.shards ?? {}))
      this.#add(shardName(Number(shard)), point);
  }

  /** The number of calls that a shard needs until it was told every point that is known of it. At least 1. */
  callsToTell(shard: number): number {
    return Math.max(1, this.#seen.get(shardName(shard))?.count ?? 0);
  }

  /** A point of each shard that a begin is about to ask. */
  #shardsOf(message: Envelope): { shards?: ShardPoints } {
    if (!("ops" in message)) return {};
    const shards: ShardPoints = {};
    for (const { shard } of message.ops as readonly Op[]) {
      const point = this.#seen.get(shardName(shard))?.next();
      if (point !== undefined) shards[shard] = point;
    }
    return Object.keys(shards).length === 0 ? {} : { shards };
  }

  /**
   * Only objects that have told a point are remembered, and those are registered. A caller may name cells
   * that do not exist. If there are too many all the same, the one that was added first is forgotten.
   */
  #add(part: string, point: HistoryPoint): void {
    const known = this.#seen.get(part) ?? new SeenPoints();
    known.add(point);
    this.#seen.set(part, known);
    const [first] = this.#seen.keys();
    if (this.#seen.size > MAX_OBJECTS && first !== undefined) this.#seen.delete(first);
  }
}

/**
 * The newest point of each incarnation of one object. Points of several incarnations are kept, because the
 * newest incarnation may be that of an object that went back in time. They take turns in the calls. A point
 * is dropped when the object has accepted it and continues with a newer incarnation.
 */
class SeenPoints {
  /** The smallest incarnation first. */
  #points: HistoryPoint[] = [];
  #turn = 0;

  get count(): number {
    return this.#points.length;
  }

  add(point: HistoryPoint): void {
    const known = this.#points.find(({ incarnation }) => incarnation === point.incarnation);
    if (known !== undefined && known.position >= point.position) return;
    this.#points = [...this.#points.filter((each) => each !== known), point].toSorted(
      (a, b) => a.incarnation - b.incarnation,
    );
    // The oldest ones are most likely to be missing, and the newest one is what nearly every call needs.
    if (this.#points.length > MAX_POINTS) this.#points.splice(-2, 1);
  }

  next(): HistoryPoint | undefined {
    this.#turn += 1;
    return this.#points[this.#turn % this.#points.length];
  }

  accepted(sent: HistoryPoint, { incarnation }: HistoryPoint): void {
    if (incarnation > sent.incarnation)
      this.#points = this.#points.filter((each) => each.incarnation !== sent.incarnation);
  }
}
