import { ask } from "../ask.ts";
import { Semaphore } from "../fan-out.ts";
import type { Limits } from "../../../common/limits.ts";
import {
  type Decision,
  type Envelope,
  type Exchange,
  type ExchangeAnswer,
  type HeldKey,
  type Op,
  type Prepare,
  type PrepareAnswer,
  type Settle,
  type SettleAnswer,
} from "../messages.ts";
import type { Answer, Ports } from "../ports.ts";
import type { PlacementGuard } from "../placement-guard.ts";
import { Histogram } from "../metrics/histogram.ts";
import type { Peers } from "../methods.ts";
import { shardOf, shardsOf, type Placement } from "../placement.ts";
import { refused, type Result } from "../refusal.ts";
import type { Slot } from "../slot.ts";
import type { Standing } from "../standing.ts";
import { sharedTraces, type Traces } from "../traces.ts";
import type { Executions } from "./executions.ts";
import type { Sightings } from "./sightings.ts";
import { ShardLink, type IsHalted, type SendExchange } from "./shard-link.ts";

interface Needs {
  readonly cell: string;
  readonly limits: Limits;
  readonly sightings: Slot<Sightings>;
  readonly standing: Slot<Standing>;
  readonly placementGuard: PlacementGuard;
  readonly peers: Pick<Peers, "shard">;
  readonly isHalted: IsHalted;
  readonly ports: Pick<Ports, "clock">;
}

/** A ledger's connections to all shards. */
export class ShardLinks {
  readonly #part: Needs;
  /** How long exchanges take. */
  readonly durations: Histogram;
  readonly #exchanges: Semaphore;
  /**
   * A semaphore of its own: a shard that settles asks other ledgers, and one that does not answer must not
   * delay exchanges (N1).
   */
  readonly #settles: Semaphore;
  readonly #links = new Map<number, ShardLink>();

  constructor(part: Needs) {
    this.#part = part;
    this.durations = new Histogram(part.ports.clock);
    this.#exchanges = new Semaphore(part.limits.fanOut);
    this.#settles = new Semaphore(part.limits.fanOut);
  }

  /** @param placement the one with which the ops of the prepare have their shards */
  prepare(
    shard: number,
    placement: Placement,
    prepare: Prepare,
    signal: { isOver: boolean },
    traces?: Traces,
  ): Promise<Answer<PrepareAnswer>> {
    return this.#linkTo(shard).prepare(placement, prepare, signal, traces);
  }

  /** Sends a decision to the shard that its names have with the current placement. */
  decide(
    shard: number,
    decision: Decision,
    ops: number,
    signal?: { isOver: boolean },
    traces?: Traces,
  ): Promise<Answer<null>> {
    return this.#linkTo(shard).decide(this.placement, decision, ops, signal, traces);
  }

  settle(
    shard: number,
    placement: Placement,
    keys: HeldKey[],
    traces?: Traces,
  ): Promise<Answer<SettleAnswer>> {
    // The shard asks other ledgers before it answers, after the questions that it has just sent them (B8).
    const timeoutMs = this.#part.limits.exchangeTimeoutMs + 2 * this.#part.limits.inquiryTimeoutMs;
    return this.#settles.run(async () => {
      // An instance that has ended sends nothing more (B5).
      if (this.#part.isHalted()) return { kind: "unknown", cause: "this instance has ended" };
      if (this.#part.standing.current.stopped !== undefined)
        return { kind: "unknown", cause: "this ledger has stopped" };
      const message: Settle = { ...this.#envelope(shard, placement), ...sharedTraces([traces]), keys };
      return ask(this.#part.ports.clock, timeoutMs, async () => {
        const reply = await this.#part.peers.shard(shard).settle(message);
        if (reply.ok) this.#part.sightings.current.see(shard, reply.value, message);
        else await this.#part.placementGuard.learn(reply.refusal);
        return reply;
      });
    });
  }

  /** Sends a message to a shard with nothing to carry out, so that both compare what they have seen. */
  touch(shard: number, placement: Placement): Promise<Answer<ExchangeAnswer>> {
    return ask(this.#part.ports.clock, this.#part.limits.exchangeTimeoutMs, () =>
      this.#exchange(shard, placement, { decisions: [], prepares: [] }, []),
    );
  }

  #linkTo(shard: number): ShardLink {
    const known = this.#links.get(shard);
    if (known !== undefined) return known;
    // The timeout runs inside the semaphore, so that a call that never returns gives up its permit.
    const send: SendExchange = (placement, content, traces) =>
      ask(this.#part.ports.clock, this.#part.limits.exchangeTimeoutMs, () =>
        this.#exchange(shard, placement, content, traces),
      );
    const link = new ShardLink(
      this.#part.ports.clock,
      this.#part.limits,
      (work) => this.#exchanges.run(work),
      send,
      this.#part.isHalted,
      () => this.placement,
    );
    this.#links.set(shard, link);
    return link;
  }

  /** Sends what this ledger has seen of the shard, and checks what the shard has seen of it (H2). */
  async #exchange(
    shard: number,
    placement: Placement,
    content: Pick<Exchange, "decisions" | "prepares">,
    traces: readonly Traces[],
  ): Promise<Result<ExchangeAnswer>> {
    // An instance that has ended sends nothing more (B5), and one that has gone back in time neither (H4).
    if (this.#part.isHalted()) throw new Error("this instance has ended");
    const lost = this.#part.standing.current.stopped;
    if (lost !== undefined) return { ok: false, refusal: lost };
    const untilMs = this.#part.ports.clock.now() + this.#part.limits.exchangeTimeoutMs;
    const first = await this.#send(shard, placement, content, traces);
    // The shard has carried out nothing, and knows a point of an instance that was not the last one (H5).
    if (!first.ok || first.value.isUnchecked !== true) return first;
    // Nobody waits for it any more, or this instance has ended (B5).
    const isOver = this.#part.isHalted() || this.#part.ports.clock.now() >= untilMs;
    const second = isOver ? first : await this.#send(shard, placement, content, traces, first.value);
    if (!second.ok || second.value.isUnchecked !== true) return second;
    return refused("UNAVAILABLE", `shard ${shard} knows another instance of this ledger; retry`, {
      retryAfterMs: 1_000,
    });
  }

  async #send(
    shard: number,
    placement: Placement,
    content: Pick<Exchange, "decisions" | "prepares">,
    traces: readonly Traces[],
    unchecked?: ExchangeAnswer,
  ): Promise<Result<ExchangeAnswer>> {
    const sightings = this.#part.sightings.current;
    const message: Exchange = {
      ...this.#envelope(shard, placement),
      ...sharedTraces(traces),
      cell: this.#part.cell,
      ...sightings.own(shard, unchecked),
      ...content,
    };
    const reply = await this.durations.time(() => this.#part.peers.shard(shard).exchange(message));
    if (!reply.ok) {
      await this.#part.placementGuard.learn(reply.refusal);
      return reply;
    }
    const refusal = sightings.compare(shard, reply.value);
    if (refusal !== undefined) return { ok: false, refusal };
    sightings.see(shard, reply.value, message);
    return reply;
  }

  /**
   * Returns what a message to a shard begins with. Undefined: an instance that has ended sends nothing more
   * (B5), and one that has gone back in time neither (H4).
   */
  envelopeTo(shard: number, placement: Placement): Envelope | undefined {
    const isOver = this.#part.isHalted() || this.#part.standing.current.stopped !== undefined;
    return isOver ? undefined : this.#envelope(shard, placement);
  }

  #envelope(shard: number, placement: Placement): Envelope {
    return { placement, ...this.#part.sightings.current.of(shard) };
  }

  /** Adds to each epoch the newest incarnation of its shard that has answered. */
  executions(epochs: ReadonlyMap<number, number>): Executions {
    return new Map(
      [...epochs].map(([shard, epoch]) => [
        shard,
        { epoch, incarnation: this.#part.sightings.current.incarnationOf(shard) },
      ]),
    );
  }

  /** The shard that has a name now. `shard` is the one that had it when the op was placed. */
  shardNow({ type, canonical, shard }: Pick<Op, "type" | "canonical" | "shard">): number {
    return this.#part.placementGuard.hasChanged ? shardOf(type, canonical, shardsOf(this.placement)) : shard;
  }

  /** Nothing is sent before the first call was admitted, and from then on the placement is known. */
  get placement(): Placement {
    const placement = this.#part.placementGuard.placement;
    if (placement === undefined)
      throw new Error("a ledger must confirm its placement before it sends a message");
    return placement;
  }
}
