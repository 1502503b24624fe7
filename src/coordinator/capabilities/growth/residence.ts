import type { Standing } from "../../kernel/standing.ts";
import type { Limits } from "../../../common/limits.ts";
import { ask } from "../../kernel/ask.ts";
import { fanOut } from "../../kernel/fan-out.ts";
import type { GroupCommit } from "../../kernel/group-commit.ts";
import type { Instances } from "../../kernel/instances.ts";
import type { BucketKey, Decision, PingShard, ShardWork } from "../../kernel/messages.ts";
import type { Peers } from "../../kernel/methods.ts";
import type { Change, PlacementGuard } from "../../kernel/placement-guard.ts";
import { placementOf, shardsOf, type Placement } from "../../kernel/placement.ts";
import type { Ports } from "../../kernel/ports.ts";
import { ok, refused, type Refusal, type Result } from "../../kernel/refusal.ts";
import type * as kernel from "../../kernel/shard/residence.ts";
import type { Queues } from "../../kernel/shard/queues.ts";
import type { Sweeper } from "../../kernel/shard/sweeper.ts";
import type { Slot } from "../../kernel/slot.ts";
import type {
  AbortedGrowth,
  Growth,
  GrowthProgress,
  GrowthStep,
  HandedOver,
  Receive,
  Received,
} from "./messages.ts";
import type { GrowthSource } from "./source.ts";
import { WIPE_ROWS, type GrowthTarget } from "./target.ts";

/** The rows that a shard sends at once after a cut. Its alarm sends the others. */
const HAND_OVER_ROWS = 100_000;

/** The transactions of one alarm that delete copies of an aborted growth (G1). */
const COPY_DROPS_PER_ALARM = 10;

/** The rows that one alarm sends to other shards (G7). Nobody serves them meanwhile. */
const SENT_ROWS = 5_000;
/** The rows that one alarm reads to delete those that have moved. Begins wait for it. */
const DELETED_ROWS = 1_000;

interface Needs {
  readonly index: number;
  readonly ports: Pick<Ports, "sql" | "clock" | "log">;
  readonly limits: Limits;
  readonly peers: Pick<Peers, "shard">;
  readonly placementGuard: PlacementGuard;
  readonly instances: Instances;
  readonly standing: Slot<Standing>;
  readonly commits: GroupCommit;
  readonly source: GrowthSource;
  readonly target: GrowthTarget;
  readonly touch: (cell: null) => void;
  readonly queues: Slot<Pick<Queues, "sendAway">>;
  readonly sweeper: Pick<Sweeper, "arm">;
}

/** Which names are here, and what a growth does with those of a shard. */
export class Residence implements kernel.Residence {
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

  /** Whether names are copied, handed over or deleted. Then no transfer can get a range hold (G10). */
  get isChanging(): boolean {
    return this.#part.source.isRunning || !this.isWhole;
  }

  get awaitsNames(): boolean {
    return !this.#part.target.isWhole;
  }

  get newShards(): number[] {
    return this.#part.source.newShards;
  }

  /** Whether this shard already has all holds of a decision that it gets. Others may hand over some (G5). */
  hasAllOf({ keys, grantedBy }: Decision): boolean {
    if (keys !== undefined) return keys.every((key) => this.serves(key));
    return grantedBy === undefined || this.#part.target.isWhole;
  }

  /** Answers a new shard that asks whether this one has handed over (G5). */
  pinged({ newShard }: PingShard): Partial<ShardWork> {
    if (this.awaitsNames) this.askForNames();
    const handedOver = newShard === undefined ? undefined : this.#part.source.handedOverTo(newShard);
    return handedOver === undefined ? {} : { handedOver };
  }

  notHere(): Refusal {
    this.askForNames();
    return refused(
      "UNAVAILABLE",
      `shard ${this.#part.index} is taking over or handing over names, because the deployment gets more ` +
        "shards; retry the call",
      { retryAfterMs: 1_000, isMoving: true },
    ).refusal;
  }

  /** Tells the shards that have not handed over what is in force, so that they do. */
  askForNames(): void {
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
    if (this.#part.standing.current.incomplete === undefined)
      this.#part.standing.current.behind(`shard ${source}`);
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
  readonly changePlacement: Change = async ({ placement, growth }, adopt) => {
    const before = this.#part.placementGuard.placement;
    const cut = growth?.phase === "cut" ? growth : undefined;
    if (before === undefined && (cut === undefined || this.#part.index >= cut.from)) {
      // A growth in which this shard got its names has ended, and it has only those of an aborted one.
      if (cut === undefined && this.#part.target.hasCopiesToDrop)
        this.#part.standing.current.behind("the directory");
      this.#part.ports.sql.transaction(["confirm_placement"], () => {
        adopt();
        if (cut !== undefined) this.#part.target.expect(cut);
      });
      return;
    }
    if (before !== undefined && (cut === undefined || shardsOf(before) !== cut.from))
      // The growth has ended, which it does only after this shard has handed over: this shard went back.
      this.#part.standing.current.behind("the directory");
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
  };

  /** Nobody serves the names until they are handed over. If this fails, the alarm goes on. */
  handOver(): void {
    void this.#handOver();
  }

  async #handOver(): Promise<void> {
    this.#part.sweeper.arm();
    try {
      await this.#part.source.work(HAND_OVER_ROWS, { mostDeleted: 0 });
    } catch (error) {
      this.#part.ports.log("hand_over_failed", {
        shard: this.#part.index,
        error: error instanceof Error ? error.message : String(error),
      });
    }
  }

  /** What is left is copied again (H6). */
  lossAccepted(): void {
    this.#part.source.lossAccepted();
    this.#part.target.lossAccepted();
  }

  /** When names are to be handed over or deleted, or copies of an aborted growth. */
  get dueMs(): number {
    return this.#part.source.hasWork || this.#part.target.hasCopiesToDrop ? 0 : Infinity;
  }

  async work(): Promise<void> {
    for (let left = COPY_DROPS_PER_ALARM; left > 0 && this.#part.target.hasCopiesToDrop; left -= 1)
      await this.#part.commits.submit("clean", () => this.#part.target.dropCopies(), { weight: WIPE_ROWS });
    if (this.#part.source.hasWork) await this.#part.source.work(SENT_ROWS, { mostDeleted: DELETED_ROWS });
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
      this.#part.standing.current.admit(message.seen, "a caller") ??
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
    this.#part.sweeper.arm();
    const { progress } = this.#part.source;
    return ok(this.#part.target.hasCopiesToDrop ? { ...progress, state: "cleaning" } : progress);
  }

  #refuseSeen({ sightings = [] }: GrowthStep): Refusal | undefined {
    for (const { cell, point } of sightings) {
      const refusal = this.#part.standing.current.admit(point, `the ledger of cell ${cell}`);
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
    const hasSeen = seen === undefined || this.#part.instances.includes(seen);
    if (isReplaceable && !hasSeen && this.#part.standing.current.stopped === undefined) {
      await this.#part.ports.sql.flush();
      return ok({ state: "unknown", point: this.#part.instances.point ?? null, seen: null });
    }
    const refusal = this.#part.standing.current.admit(seen, sender);
    if (refusal !== undefined) {
      if (this.#part.standing.current.stopped !== undefined) await this.#part.ports.sql.flush();
      return { ok: false, refusal };
    }
    const reply = await this.#part.commits.submit("receive", () => this.#part.target.receive(message), {
      weight: 2 * message.names.length + 8,
    });
    // The moved holds need a sweep, and the first message may have found no alarm (M3).
    this.#part.sweeper.arm();
    return reply.ok ? ok({ ...reply.value, point: this.#part.instances.point ?? null }) : reply;
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
