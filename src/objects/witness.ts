import { laterPoint } from "../core/history.ts";
import type { Envelope, HistoryPoint, Op, ShardPoints, Told } from "../core/messages.ts";
import type { Objects } from "./objects.ts";

type Method = (message: Envelope) => Promise<Told>;

/**
 * Remembers the newest points of the objects that their answers have told, and adds them to later calls (H2).
 * So a part that went back in time is noticed although the caller that knows better is silent. The memory is
 * lost with its isolate: it makes the notice earlier, and no rule depends on it. It has at most one point per
 * object.
 */
export class Witness {
  readonly #ledgers = new Map<string, HistoryPoint>();
  readonly #shards = new Map<number, HistoryPoint>();
  #directory: HistoryPoint | undefined;

  /** Returns the same objects, whose calls carry what this witness has seen. */
  watch(objects: Objects): Objects {
    return {
      ledger: (cell, locationHint) =>
        watched(
          objects.ledger(cell, locationHint),
          (message) => ({ ...seenOf(this.#ledgers.get(cell)), ...this.#shardsOf(message) }),
          ({ point, shards }) => {
            if (point !== undefined) this.#ledgers.set(cell, laterPoint(this.#ledgers.get(cell), point));
            for (const [shard, seen] of Object.entries(shards ?? {})) this.#seeShard(Number(shard), seen);
          },
        ),
      shard: (index) =>
        watched(
          objects.shard(index),
          () => seenOf(this.#shards.get(index)),
          ({ point }) => this.#seeShard(index, point),
        ),
      directory: () =>
        watched(
          objects.directory(),
          () => seenOf(this.#directory),
          ({ point }) => {
            if (point !== undefined) this.#directory = laterPoint(this.#directory, point);
          },
        ),
    };
  }

  #seeShard(shard: number, point: HistoryPoint | undefined): void {
    if (point !== undefined) this.#shards.set(shard, laterPoint(this.#shards.get(shard), point));
  }

  /** The points of the shards that a begin is about to ask. */
  #shardsOf(message: Envelope): { shards?: ShardPoints } {
    if (!("ops" in message)) return {};
    const shards: ShardPoints = {};
    for (const { shard } of message.ops as readonly Op[]) {
      const point = this.#shards.get(shard);
      if (point !== undefined) shards[shard] = point;
    }
    return Object.keys(shards).length === 0 ? {} : { shards };
  }
}

const seenOf = (point: HistoryPoint | undefined): { seen?: HistoryPoint } =>
  point === undefined ? {} : { seen: point };

/**
 * Wraps all methods of an object. What a caller knows itself wins over what `add` knows, because it may come
 * from a cell that stores it.
 */
function watched<Calls extends object>(
  calls: Calls,
  add: (message: Envelope) => Partial<Envelope>,
  learn: (told: Told) => void,
): Calls {
  return new Proxy(calls, {
    get: (target, method) => async (message: Envelope) => {
      // Called on the stub itself: a stub takes `.call` for the name of a remote method.
      const methods = target as Record<PropertyKey, Method>;
      const answer = await methods[method]?.({ ...add(message), ...message });
      if (answer !== undefined) learn(answer);
      return answer;
    },
  });
}
