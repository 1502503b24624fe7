import { tableOf } from "./holds.ts";
import type {
  Growth,
  GrowthProgress,
  GrowthStep,
} from "../../src/coordinator/capabilities/growth/messages.ts";
import { placementOf, shardOf } from "../../src/coordinator/kernel/placement.ts";
import { ok, type Result } from "../../src/coordinator/kernel/refusal.ts";
import type { GrowthDriver } from "../../src/coordinator/capabilities/growth/edge/growth-driver.ts";
import type { Cluster } from "./cluster.ts";
import { keyOf, operator } from "./ops.ts";

const valueOf = <T>(reply: Result<T>): T => {
  if (!reply.ok) throw new Error(reply.refusal.detail);
  return reply.value;
};

/** An operator who gets more shards for a deployment, and who has learned the placement in force. */
export class Growing {
  readonly #cluster: Cluster;
  growth: Growth | null = null;

  constructor(cluster: Cluster) {
    this.#cluster = cluster;
  }

  get running(): Growth {
    if (this.growth === null) throw new Error("no growth runs");
    return this.growth;
  }

  async start(to: number): Promise<void> {
    this.growth = valueOf(
      await this.#run(
        this.#directory.startGrowth({ ...this.#cluster.envelope, operator, to, growthCopiedAt: 0 }),
      ),
    );
  }

  async abort(): Promise<Growth> {
    const aborted = this.running;
    const message = { ...this.#cluster.envelope, operator, id: aborted.id };
    valueOf(await this.#run(this.#directory.abortGrowth({ ...message, growthCopiedAt: 0 })));
    return aborted;
  }

  /** A step of one shard. */
  step = (
    shard: number,
    rows = 1_000,
    growth: GrowthStep["growth"] = this.running,
  ): Promise<Result<GrowthProgress>> =>
    this.#run(this.#cluster.shard(shard).object.growStep({ ...this.#cluster.envelope, growth, rows }));

  /** Steps of all shards of before, until each of them has this state. */
  async stepAll(state: GrowthProgress["state"], rows = 1_000): Promise<void> {
    const { from } = this.running;
    for (let shard = 0; shard < from; shard += 1)
      for (let tried = 0; ; tried += 1) {
        const progress = valueOf(await this.step(shard, rows));
        if (progress.state === state) break;
        if (tried > 100) throw new Error(`shard ${shard} stays ${progress.state}`);
      }
  }

  /** What the shards of before say. A shard that doesn't answer is left out. */
  async progress(): Promise<GrowthProgress[]> {
    const { envelope, clock } = this.#cluster;
    const sources = [...Array(this.running.from).keys()].map((shard) => this.#cluster.shard(shard).object);
    const replies = await clock.runUntil(
      Promise.all(sources.map((source) => source.growthProgress(envelope))),
    );
    return replies.flatMap((reply) => (reply.ok ? [reply.value] : []));
  }

  /** Cuts, without telling anybody. By default, the shards of before speak for themselves. */
  async cut(saidBySources?: GrowthProgress[]): Promise<void> {
    const { id } = this.running;
    const message = { ...this.#cluster.envelope, operator, id };
    const sources = saidBySources ?? (await this.progress());
    const ordered = valueOf(
      await this.#run(this.#directory.cutGrowth({ ...message, growthCopiedAt: 0, sources })),
    );
    this.growth = valueOf(
      await this.#run(this.#directory.confirmCut({ ...message, growthCopiedAt: ordered.position })),
    );
  }

  /** From here on, clients use the new placement. */
  learn(): void {
    this.#cluster.envelope.placement = placementOf(this.running.to);
  }

  async finish(): Promise<void> {
    const concluded = { ...this.running, phase: "concluded" } as const;
    for (let shard = 0; shard < concluded.from; shard += 1) valueOf(await this.step(shard, 1, concluded));
    valueOf(
      await this.#run(this.#directory.finishGrowth({ ...this.#cluster.envelope, id: this.running.id })),
    );
    this.growth = null;
  }

  async complete(to: number): Promise<void> {
    await this.start(to);
    await this.stepAll("copied");
    await this.cutAndHandOver();
    await this.finish();
  }

  /** Cuts, and goes on until the shards of before have deleted what has moved. */
  async cutAndHandOver(): Promise<void> {
    await this.cut();
    this.learn();
    await this.stepAll("done");
  }

  get #directory() {
    return this.#cluster.directory.object;
  }

  #run<T>(call: Promise<T>): Promise<T> {
    return this.#cluster.clock.runUntil(call);
  }
}

/** What shards say that have copied their names. */
export const copiedBy = (growth: string, shards: number): GrowthProgress[] =>
  [...Array(shards).keys()].map((shard) => ({
    shard,
    growth,
    state: "copied",
    copied: 1,
    waiting: 0,
    cleaned: 0,
    waitsFor: null,
  }));

/** What makes the steps of a growth, with a D1 that has seen nothing. */
export const growthDriver = (c: Cluster, objects: object = {}): GrowthDriver => ({
  envelope: c.envelope,
  objects: {
    directory: () => c.directory.object,
    ledger: (cell: string) => c.ledger(cell).object,
    shard: (shard: number) => c.shard(shard).object,
    ...objects,
  },
  database: { run: async () => ok([]) } as never,
  limits: c.limits,
  clock: c.clock,
});

/** Names that have one shard with some shards and another one with more. */
export const movingNames = (from: number, to: number, count: number, source?: number): string[] =>
  namesWhere(count, (shard) => shard(from) !== shard(to) && (source === undefined || shard(from) === source));

export const stayingNames = (from: number, to: number, count: number, source?: number): string[] =>
  namesWhere(count, (shard) => shard(from) === shard(to) && (source === undefined || shard(from) === source));

function namesWhere(count: number, fits: (shard: (shards: number) => number) => boolean): string[] {
  const found: string[] = [];
  for (let n = 0; found.length < count; n += 1) {
    const name = `n${n}`;
    const { type, canonical } = keyOf("ROUTES", name);
    if (fits((shards) => shardOf(type, canonical, shards))) found.push(name);
  }
  return found;
}

/** All rows of claims or holds, with their shards. */
export function rowsOn(c: Cluster, table: "claim" | "hold"): { shard: number; canonical: string }[] {
  return c.shards.flatMap(([shard, { database }]) =>
    (database.prepare(`SELECT canonical FROM ${tableOf(table)}`).all() as { canonical: string }[]).map(
      ({ canonical }) => ({ shard, canonical }),
    ),
  );
}
