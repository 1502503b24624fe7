import { placementOf, shardsOf, type Placement } from "../core/placement.ts";
import type { Objects } from "./objects.ts";
import type { Refusal } from "../core/refusal.ts";
import type { Envelope, Reply } from "../core/messages.ts";

/**
 * The placement that an isolate, or a run of the cron, computes with. It starts as a guess: the number of
 * shards with which a new deployment starts. The directory and the objects only tell placements that are in
 * force, so the first of them replaces the guess. Later ones count if they have more shards, because a
 * deployment only grows.
 */
export class KnownPlacement {
  #current: Placement;
  #isGuess = true;

  constructor(initialShards: number) {
    this.#current = placementOf(initialShards);
  }

  get current(): Placement {
    return this.#current;
  }

  get shards(): number {
    return shardsOf(this.#current);
  }

  /** A placement with another hash or another canonical form is of no use to this code. */
  learn(placement: Placement): void {
    const shards = shardsOf(placement);
    if (placement !== placementOf(shards)) return;
    if (!this.#isGuess && shards <= this.shards) return;
    this.#current = placement;
    this.#isGuess = false;
  }

  /** Returns the same objects, whose refusals tell this placement what is in force. */
  watch(objects: Objects): Objects {
    const learn = ({ reason, placement }: Refusal): void => {
      if (reason === "PLACEMENT_MISMATCH" && placement !== undefined) this.learn(placement);
    };
    return {
      ledger: (cell, locationHint) => watched(objects.ledger(cell, locationHint), learn),
      shard: (index) => watched(objects.shard(index), learn),
      directory: () => watched(objects.directory(), learn),
    };
  }
}

type Method = (message: Envelope) => Promise<Reply<unknown> | undefined>;

/** Wraps all methods of an object, so that its refusals are seen. */
export const watched = <Calls extends object>(calls: Calls, onRefusal: (refusal: Refusal) => void): Calls =>
  new Proxy(calls, {
    get: (target, method) => async (message: Envelope) => {
      // Called on the stub itself: a stub takes `.call` for the name of a remote method.
      const answer = await (target as Record<PropertyKey, Method>)[method]?.(message);
      if (answer?.ok === false) onRefusal(answer.refusal);
      return answer;
    },
  });
