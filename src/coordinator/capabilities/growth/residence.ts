import type { Confirmed } from "../../kernel/directory/messages.ts";
import type { Limits } from "../../../common/limits.ts";
import { ask } from "../../kernel/ask.ts";
import { fanOut } from "../../kernel/fan-out.ts";
import type { GroupCommit } from "../../kernel/group-commit.ts";
import type { History } from "../../kernel/history.ts";
import type { BucketKey, Decision, HandedOver } from "../../kernel/messages.ts";
import type { Peers } from "../../kernel/methods.ts";
import type { PlacementGuard } from "../../kernel/placement-guard.ts";
import { placementOf, shardsOf, type Placement } from "../../kernel/placement.ts";
import type { Ports } from "../../kernel/ports.ts";
import { ok, refused, type Refusal, type Result } from "../../kernel/refusal.ts";
import type { HoldRow } from "../../kernel/shard/rows.ts";
import type { Queues } from "../../kernel/shard/queues.ts";
import type { Slot } from "../../kernel/slot.ts";
import type { AbortedGrowth, Growth, GrowthProgress, GrowthStep, Receive, Received } from "./messages.ts";
import type { GrowthSource } from "./source.ts";
import { WIPE_ROWS, type GrowthTarget } from "./target.ts";

/** The rows that a shard sends at once after a cut. Its alarm sends the others. */
const HAND_OVER_ROWS = 100_000;

interface Needs {
  readonly index: number;
  readonly ports: Pick<Ports, "sql" | "clock" | "log">;
  readonly limits: Limits;
  readonly peers: Pick<Peers, "shard">;
  readonly placementGuard: PlacementGuard;
  readonly history: History;
  readonly commits: GroupCommit;
  readonly source: GrowthSource;
  readonly target: GrowthTarget;
  readonly touch: (cell: null) => void;
  readonly queues: Slot<Pick<Queues, "sendAway">>;
  readonly armAlarm: () => void;
}

/** Which names are here, and what a growth does with those of a shard. */
export class Residence {
  readonly #part: Needs;
  #waking: Promise<unknown> | undefined;

  constructor(part: Needs) {
    this.#part = part;
  }

  serves(key: BucketKey): boolean {
    return this.#part.target.serves(key) && this.#part.source.serves(key);
  }

  /** Whether the rows here are exactly the names that this shard serves (G8). */
  get isWhole(): boolean {
    return this.#part.target.isWhole && this.#part.source.isWhole;
  }

  servesAll(keys: readonly BucketKey[]): boolean {
    return this.isWhole || keys.every((key) => this.serves(key));
  }

  servesHold({ bucket_type: type, canonical }: HoldRow): boolean {
    return this.isWhole || this.serves({ type, canonical });
  }

  /** Whether this shard already has all holds of a decision that it gets. Others may hand over some (G5). */
  hasAllOf({ keys, grantedBy }: Decision): boolean {
    if (keys !== undefined) return this.servesAll(keys);
    return grantedBy === undefined || this.#part.target.isWhole;
  }

  notHere(): Refusal {
    this.wakeSources();
    return refused(
      "UNAVAILABLE",
      `shard ${this.#part.index} is taking over or handing over names, because the deployment gets more ` +
        "shards; retry the call",
      { retryAfterMs: 1_000, isMoving: true },
    ).refusal;
  }

  /** Tells the shards that have not handed over what is in force, so that they do. */
  wakeSources(): void {
    const { placement } = this.#part.placementGuard;
    if (placement === undefined || this.#waking !== undefined) return;
    const message = { placement, newShard: this.#part.index };
    const { inquiryTimeoutMs, fanOut: width } = this.#part.limits;
    this.#waking = fanOut(this.#part.target.missingSources, width, async (source) => {
      const answer = await ask(this.#part.ports.clock, inquiryTimeoutMs, () =>
        this.#part.peers.shard(source).ping(message),
      );
      if (answer.kind === "ok" && answer.value.handedOver !== undefined)
        this.#handedOverBy(source, answer.value.handedOver);
    }).finally(() => {
      this.#waking = undefined;
    });
  }

  /** A source has handed over, which it knows only if that was durable here. */
  #handedOverBy(source: number, handedOver: HandedOver): void {
    if (!this.#part.target.missingSources.includes(source)) return;
    if (this.#part.history.state !== "reconciling") this.#part.history.refuseBehind(`shard ${source}`);
    else
      void this.#part.commits.submit("receive", () => {
        // The source may have sent it again during the wait (M1).
        if (this.#part.target.missingSources.includes(source)) this.#part.target.giveUp(source, handedOver);
      });
  }

  /**
   * Changes to a placement that the directory has confirmed. A shard that has names to give away stops to
   * serve them in the same transaction, and then hands them over (G6).
   */
  async changePlacement({ placement, growth }: Confirmed, adopt: () => void): Promise<void> {
    // There is no such shard.
    if (this.#part.index >= shardsOf(placement)) return;
    const before = this.#part.placementGuard.placement;
    const cut = growth?.phase === "cut" ? growth : undefined;
    if (before === undefined && (cut === undefined || this.#part.index >= cut.from)) {
      // A growth in which this shard got its names has ended, and it has only those of an aborted one.
      if (cut === undefined && this.#part.target.hasCopiesToDrop)
        this.#part.history.refuseBehind("the directory");
      this.#part.ports.sql.transaction(["confirm_placement"], () => {
        adopt();
        if (cut !== undefined) this.#part.target.expect(cut);
      });
      return;
    }
    if (before !== undefined && (cut === undefined || shardsOf(before) !== cut.from))
      // The growth has ended, which it does only after this shard has handed over: this shard went back.
      this.#part.history.refuseBehind("the directory");
    const fence = (): void => {
      if (this.#part.placementGuard.placement === placement) return;
      const missed = missedGrowth(before ?? placement, placement);
      adopt();
      this.#part.touch(null);
      this.#part.source.fence(cut ?? missed);
    };
    // Also a shard that went back must not serve with an old placement after its loss is accepted (G3).
    await this.#part.commits.submit("fence", fence, { evenIfStopped: true });
    this.#part.queues.current.sendAway((key) => !this.serves(key));
    this.handOver();
  }

  /** Nobody serves the names until they are handed over. If this fails, the alarm goes on. */
  handOver(): void {
    void this.#handOver();
  }

  async #handOver(): Promise<void> {
    this.#part.armAlarm();
    try {
      await this.#part.source.work(HAND_OVER_ROWS, { mostDeleted: 0 });
    } catch (error) {
      this.#part.ports.log("hand_over_failed", {
        shard: this.#part.index,
        error: error instanceof Error ? error.message : String(error),
      });
    }
  }

  /** Does some of the work of a growth: copies names, hands them over, or deletes those that have moved. */
  async growStep(message: GrowthStep): Promise<Result<GrowthProgress>> {
    const { growth } = message;
    if (growth?.phase === "aborted" && this.#part.target.hasOnlyCopies) return this.#dropCopies(growth);
    // A step after the cut may have either placement, and may change that of this shard.
    const isCut = growth?.phase === "cut";
    const { placement = message.placement } = isCut ? this.#part.placementGuard : message;
    const refusal =
      (await this.#part.placementGuard.admit({ ...message, placement })) ??
      this.#part.history.refuse(message.seen, "a caller") ??
      this.#refuseSeen(message);
    const reply =
      refusal === undefined ? await this.#part.source.step(message) : { ok: false as const, refusal };
    await this.#part.ports.sql.flush();
    return reply;
  }

  /**
   * Drops the copies that an aborted growth has sent here (G1). The alarm deletes what is left. If it was
   * lost, the next messages of the cron do (M3).
   */
  async #dropCopies(growth: AbortedGrowth): Promise<Result<GrowthProgress>> {
    await this.#part.placementGuard.begin();
    const weight = WIPE_ROWS;
    const dropped = await this.#part.commits.submit("clean", () => this.#part.target.abort(growth), {
      weight,
    });
    if (!dropped.ok) return dropped;
    this.#part.armAlarm();
    const { progress } = this.#part.source;
    return ok(this.#part.target.hasCopiesToDrop ? { ...progress, state: "cleaning" } : progress);
  }

  #refuseSeen({ sightings = [] }: GrowthStep): Refusal | undefined {
    for (const { cell, point } of sightings) {
      const refusal = this.#part.history.refuse(point, `the ledger of cell ${cell}`);
      if (refusal !== undefined) return refusal;
    }
    return undefined;
  }

  /** Stores names that another shard gives to this one (G5). This shard may have no placement yet. */
  async receive(message: Receive): Promise<Result<Received>> {
    const sender = `shard ${message.source}`;
    const { growth, seen, placement } = message;
    await this.#part.placementGuard.begin();
    // Before the cut, this shard has nothing but copies, so it can get what it has lost again.
    const isReplaceable =
      this.#part.placementGuard.placement === undefined && placement === placementOf(growth.from);
    const hasSeen = seen === undefined || this.#part.history.includes(seen);
    if (isReplaceable && !hasSeen && !this.#part.history.isLost) {
      await this.#part.ports.sql.flush();
      return ok({ state: "unknown", point: this.#part.history.point ?? null, seen: null });
    }
    const refusal = this.#part.history.refuse(seen, sender);
    if (refusal !== undefined) {
      if (this.#part.history.isLost) await this.#part.ports.sql.flush();
      return { ok: false, refusal };
    }
    const reply = await this.#part.commits.submit("receive", () => this.#part.target.receive(message), {
      weight: 2 * message.names.length + 8,
    });
    // The moved holds need a sweep, and the first message may have found no alarm (M3).
    this.#part.armAlarm();
    return reply.ok ? ok({ ...reply.value, point: this.#part.history.point ?? null }) : reply;
  }
}

/** A growth that this shard has missed, because it went back in time. The names are handed over already. */
const missedGrowth = (before: Placement, after: Placement): Growth => ({
  id: `missed ${after}`,
  from: shardsOf(after),
  to: shardsOf(after),
  phase: "cut",
  startedAtMs: 0,
  startedBy: "",
  cutAtMs: 0,
  position: shardsOf(before),
});
