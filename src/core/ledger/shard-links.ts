import { ask } from "../ask.ts";
import { Semaphore } from "../fan-out.ts";
import type { Limits } from "../limits.ts";
import {
  MESSAGE_VERSION,
  type BucketKey,
  type Decision,
  type Exchange,
  type ExchangeAnswer,
  type Prepare,
  type PrepareAnswer,
  type Reply,
  type Settle,
  type SettleAnswer,
} from "../messages.ts";
import type { Answer, Clock } from "../ports.ts";
import type { PlacementGuard } from "../placement-guard.ts";
import { ShardLink, type IsHalted } from "./shard-link.ts";

export interface ShardPeer {
  exchange(shard: number, message: Exchange): Promise<Reply<ExchangeAnswer>>;
  settle(shard: number, message: Settle): Promise<Reply<SettleAnswer>>;
}

/** A ledger's connections to all shards. */
export class ShardLinks {
  readonly #clock: Clock;
  readonly #limits: Limits;
  readonly #placementGuard: PlacementGuard;
  readonly #peer: ShardPeer;
  readonly #isHalted: IsHalted;
  readonly #exchanges: Semaphore;
  /**
   * A semaphore of its own: a shard that settles asks other ledgers, and one that does not answer must not
   * delay exchanges (N1).
   */
  readonly #settles: Semaphore;
  readonly #links = new Map<number, ShardLink>();

  constructor(
    clock: Clock,
    limits: Limits,
    placementGuard: PlacementGuard,
    peer: ShardPeer,
    isHalted: IsHalted,
  ) {
    this.#clock = clock;
    this.#limits = limits;
    this.#placementGuard = placementGuard;
    this.#peer = peer;
    this.#isHalted = isHalted;
    this.#exchanges = new Semaphore(limits.fanOut);
    this.#settles = new Semaphore(limits.fanOut);
  }

  prepare(shard: number, prepare: Prepare, signal: { isOver: boolean }): Promise<Answer<PrepareAnswer>> {
    return this.#linkTo(shard).prepare(this.#placement(), prepare, signal);
  }

  decide(shard: number, decision: Decision): Promise<Answer<null>> {
    return this.#linkTo(shard).decide(this.#placement(), decision);
  }

  settle(shard: number, keys: BucketKey[]): Promise<Answer<SettleAnswer>> {
    const message: Settle = { version: MESSAGE_VERSION, placement: this.#placement(), keys };
    // The shard asks other ledgers before it answers, so their timeout is added to that of the message.
    const timeoutMs = this.#limits.exchangeTimeoutMs + this.#limits.inquiryTimeoutMs;
    return this.#settles.run(async () => {
      // An instance that has ended sends nothing more (B5).
      if (this.#isHalted()) return { kind: "unknown", cause: "this instance has ended" };
      return ask(this.#clock, timeoutMs, () => this.#peer.settle(shard, message));
    });
  }

  #linkTo(shard: number): ShardLink {
    const known = this.#links.get(shard);
    if (known !== undefined) return known;
    // The timeout runs inside the semaphore, so that a call that never returns gives up its permit.
    const send = (message: Exchange): Promise<Answer<ExchangeAnswer>> =>
      ask(this.#clock, this.#limits.exchangeTimeoutMs, () => this.#peer.exchange(shard, message));
    const link = new ShardLink(
      this.#clock,
      this.#limits,
      (work) => this.#exchanges.run(work),
      send,
      this.#isHalted,
    );
    this.#links.set(shard, link);
    return link;
  }

  /** Nothing is sent before the first call was admitted, and from then on the placement is known. */
  #placement(): string {
    const placement = this.#placementGuard.placement;
    if (placement === undefined)
      throw new Error("a ledger must confirm its placement before it sends a message");
    return placement;
  }
}
