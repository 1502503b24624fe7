import { ask } from "../ask.ts";
import { fanOut, Semaphore } from "../fan-out.ts";
import type { Limits } from "../../../common/limits.ts";
import {
  type Decision,
  type Envelope,
  type Exchange,
  type ExchangeAnswer,
  type HeldKey,
  type HistoryPoint,
  type Op,
  type Prepare,
  type PrepareAnswer,
  type Settle,
  type ShardPoints,
  type SettleAnswer,
} from "../messages.ts";
import type { Answer, Ports } from "../ports.ts";
import type { PlacementGuard } from "../placement-guard.ts";
import { Histogram } from "../metrics/histogram.ts";
import type { Peers } from "../methods.ts";
import { isSamePoint, type Instances } from "../instances.ts";
import { shardOf, shardsOf, type Placement } from "../placement.ts";
import { refused, type Refusal, type Result } from "../refusal.ts";
import type { Slot } from "../slot.ts";
import type { Standing } from "../standing.ts";
import { sharedTraces, type Traces } from "../traces.ts";
import type { Executions } from "./executions.ts";
import type { LedgerStore } from "./store.ts";
import { ShardLink, type IsHalted, type SendExchange } from "./shard-link.ts";

interface Needs {
  readonly cell: string;
  readonly limits: Limits;
  readonly instances: Instances;
  readonly standing: Slot<Standing>;
  readonly placementGuard: PlacementGuard;
  readonly peers: Pick<Peers, "shard">;
  readonly isHalted: IsHalted;
  readonly ports: Pick<Ports, "clock">;
  readonly store: Pick<LedgerStore, "shardPoints">;
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
  /** The newest point of each shard that this ledger has seen (H2). */
  readonly #points: Map<number, HistoryPoint>;
  /** The largest incarnation of each shard that has answered this instance. */
  readonly #incarnations = new Map<number, number>();
  /** The shards whose points have changed since `takeNews`. */
  readonly #news = new Set<number>();
  /** The newest point of this ledger that each shard has answered, and that this ledger has (H5). */
  readonly #confirmed = new Map<number, HistoryPoint>();
  /** The comparison that is running. */
  #comparing: Promise<Refusal | undefined> | undefined;

  constructor(part: Needs) {
    this.#part = part;
    // Those that previous instances have stored.
    this.#points = new Map(part.store.shardPoints());
    this.tellAll();
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
        if (reply.ok) this.#see(shard, reply.value.point, message.seen);
        else await this.#part.placementGuard.learn(reply.refusal);
        return reply;
      });
    });
  }

  /**
   * Compares what the shards have seen of this ledger with what it has, once for each instance: only an
   * instance that has just started can have gone back in time. Returns why it has (H4), or which shard has
   * not told.
   */
  compare(): Promise<Refusal | undefined> {
    this.#comparing ??= this.#compare().finally(() => {
      this.#comparing = undefined;
    });
    return this.#comparing;
  }

  async #compare(): Promise<Refusal | undefined> {
    const { placement } = this;
    const left = [...Array(shardsOf(placement)).keys()].filter((shard) => !this.#incarnations.has(shard));
    const answers = await fanOut(left, this.#part.limits.fanOut, (shard) =>
      ask(this.#part.ports.clock, this.#part.limits.exchangeTimeoutMs, () =>
        this.#exchange(shard, placement, { decisions: [], prepares: [] }, []),
      ),
    );
    const refusal = this.#part.standing.current.stopped;
    if (refusal !== undefined) return refusal;
    const silent = left.find((_, index) => answers[index]?.kind !== "ok");
    if (silent === undefined) return undefined;
    const detail = `shard ${silent} has not told what it knows of this cell; retry`;
    return refused("UNAVAILABLE", detail, { retryAfterMs: 1_000 }).refusal;
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
    const send = (confirmed: HistoryPoint | null) => this.#send(shard, placement, content, traces, confirmed);
    const { before = null } = this.#part.instances;
    const untilMs = this.#part.ports.clock.now() + this.#part.limits.exchangeTimeoutMs;
    const first = await send(this.#confirmed.get(shard) ?? before);
    // The shard has carried out nothing, and knows a point of an instance that was not the last one (H5).
    if (!first.ok || first.value.isUnchecked !== true) return first;
    // Nobody waits for it any more, or this instance has ended (B5).
    const isOver = this.#part.isHalted() || this.#part.ports.clock.now() >= untilMs;
    const second = isOver ? first : await send(first.value.seen);
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
    confirmed: HistoryPoint | null,
  ): Promise<Result<ExchangeAnswer>> {
    const envelope = this.#envelope(shard, placement);
    const message: Exchange = {
      ...envelope,
      ...sharedTraces(traces),
      cell: this.#part.cell,
      point: this.#part.instances.point ?? null,
      confirmed,
      ...content,
    };
    const reply = await this.durations.time(() => this.#part.peers.shard(shard).exchange(message));
    if (!reply.ok) {
      await this.#part.placementGuard.learn(reply.refusal);
      return reply;
    }
    const refusal = this.confirm(shard, reply.value.seen);
    if (refusal !== undefined) return { ok: false, refusal };
    const { incarnation = 0 } = reply.value.point ?? {};
    this.#incarnations.set(shard, Math.max(this.#incarnations.get(shard) ?? 0, incarnation));
    this.#see(shard, reply.value.point, envelope.seen);
    return reply;
  }

  /**
   * Checks the point of this ledger that a shard has stored (H4). If this ledger has it, the next exchange
   * tells the shard so (H5).
   */
  confirm(shard: number, seen: HistoryPoint | null): Refusal | undefined {
    if (seen === null) return undefined;
    const refusal = this.#part.standing.current.admit(seen, `shard ${shard}`);
    if (refusal === undefined) this.#confirmed.set(shard, seen);
    return refusal;
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
    const seen = this.#points.get(shard);
    return { placement, ...(seen === undefined ? {} : { seen }) };
  }

  /**
   * Takes over a newer point. The point of another incarnation replaces the known one only if the shard has
   * accepted a message that carried the known one. Otherwise, a shard that has gone back in time could make
   * this ledger forget what it knows (H5).
   */
  #see(shard: number, point: HistoryPoint | null, carried: HistoryPoint | undefined): void {
    if (point === null) return;
    const known = this.#points.get(shard);
    const isNewer =
      known === undefined ||
      (point.incarnation === known.incarnation
        ? point.position > known.position
        : point.incarnation > known.incarnation && isSamePoint(carried, known));
    if (!isNewer) return;
    this.#points.set(shard, point);
    this.#news.add(shard);
  }

  /** Takes over points that somebody else has seen. */
  learn(points: ShardPoints): void {
    for (const [shard, point] of Object.entries(points)) this.#see(Number(shard), point, undefined);
  }

  /** Returns the points that are new since the last call, for whoever gets the next answer. */
  takeNews(): ShardPoints {
    const points: ShardPoints = {};
    for (const shard of this.#news) {
      const point = this.#points.get(shard);
      if (point !== undefined) points[shard] = point;
    }
    this.#news.clear();
    return points;
  }

  /** The next call of `takeNews` returns all points. */
  tellAll(): void {
    for (const shard of this.#points.keys()) this.#news.add(shard);
  }

  /** The newest points of all shards, to be stored (H3). */
  get points(): ReadonlyMap<number, HistoryPoint> {
    return this.#points;
  }

  /** Adds to each epoch the newest incarnation of its shard that has answered. */
  executions(epochs: ReadonlyMap<number, number>): Executions {
    return new Map(
      [...epochs].map(([shard, epoch]) => [
        shard,
        { epoch, incarnation: this.#incarnations.get(shard) ?? 0 },
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
