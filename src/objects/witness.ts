import { limitTable } from "../core/limits.ts";
import type { Envelope, HistoryPoint, Op, Reply, ShardPoints, Told } from "../core/messages.ts";
import type { DirectoryCalls, ShardCalls } from "./calls.ts";
import type { Objects } from "./objects.ts";

/**
 * The calls that a part also answers if it has gone back in time. Their success does not mean that the part
 * has the point that they carried.
 */
const NOT_COMPARED: ReadonlySet<PropertyKey> = new Set<keyof ShardCalls | keyof DirectoryCalls>([
  "part",
  "metrics",
  "scrubStatus",
  "reconcile",
  "finishReconciliation",
  "isRevoked",
  "types",
]);

type Method = (message: Envelope) => Promise<Reply<unknown> & Told>;

/** The most points that a witness remembers of one object. */
const MAX_POINTS = 8;

/** The most objects of one kind that a witness remembers: as many cells as a deployment can have. */
const MAX_OBJECTS = limitTable.maxCells.max;

/**
 * Remembers the points of the objects that their answers have told, and adds them to later calls (H2). So a
 * part that went back in time is noticed although the caller that knows better is silent. The memory is lost
 * with its isolate: it makes the notice earlier, and no rule depends on it.
 */
export class Witness {
  readonly #ledgers = new Map<string, SeenPoints>();
  readonly #shards = new Map<number, SeenPoints>();
  readonly #directory = new Map<"directory", SeenPoints>();

  /** Returns the same objects, whose calls carry what this witness has seen. */
  watch(objects: Objects): Objects {
    return {
      ledger: (cell, locationHint) =>
        watched(
          objects.ledger(cell, locationHint),
          this.#ledgers,
          cell,
          (message) => this.#shardsOf(message),
          (shards) => this.#learn(shards),
        ),
      shard: (index) => watched(objects.shard(index), this.#shards, index),
      directory: () => watched(objects.directory(), this.#directory, "directory"),
    };
  }

  /** The number of calls that a shard needs until it was told every point that is known of it. At least 1. */
  callsToTell(shard: number): number {
    return Math.max(1, this.#shards.get(shard)?.count ?? 0);
  }

  #learn(shards: ShardPoints): void {
    for (const [shard, point] of Object.entries(shards)) addPoint(this.#shards, Number(shard), point);
  }

  /** A point of each shard that a begin is about to ask. */
  #shardsOf(message: Envelope): { shards?: ShardPoints } {
    if (!("ops" in message)) return {};
    const shards: ShardPoints = {};
    for (const { shard } of message.ops as readonly Op[]) {
      const point = this.#shards.get(shard)?.next();
      if (point !== undefined) shards[shard] = point;
    }
    return Object.keys(shards).length === 0 ? {} : { shards };
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

/**
 * Only objects that have told a point are remembered, and those are registered. A caller may name cells that
 * do not exist. If there are too many all the same, the one that was added first is forgotten.
 */
function addPoint<Key>(all: Map<Key, SeenPoints>, key: Key, point: HistoryPoint): void {
  const known = all.get(key) ?? new SeenPoints();
  known.add(point);
  all.set(key, known);
  const [first] = all.keys();
  if (all.size > MAX_OBJECTS && first !== undefined) all.delete(first);
}

/**
 * Wraps all methods of an object. What a caller knows itself wins over what the witness knows, because it may
 * come from a cell that stores it.
 */
function watched<Calls extends object, Key>(
  calls: Calls,
  all: Map<Key, SeenPoints>,
  key: Key,
  add: (message: Envelope) => Partial<Envelope> = () => ({}),
  learn: (shards: ShardPoints) => void = () => {},
): Calls {
  return new Proxy(calls, {
    get: (target, method) => async (message: Envelope) => {
      const seen = all.get(key)?.next();
      // Called on the stub itself: a stub takes `.call` for the name of a remote method.
      const methods = target as Record<PropertyKey, Method>;
      const answer = await methods[method]?.({
        ...(seen === undefined ? {} : { seen }),
        ...add(message),
        ...message,
      });
      if (answer?.point !== undefined) {
        addPoint(all, key, answer.point);
        const isCompared = answer.ok && message.seen === undefined && !NOT_COMPARED.has(method);
        if (isCompared && seen !== undefined) all.get(key)?.accepted(seen, answer.point);
      }
      if (answer?.shards !== undefined) learn(answer.shards);
      return answer;
    },
  });
}
