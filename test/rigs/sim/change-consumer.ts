import type { Change, ChangesPage } from "../../../src/core/messages.ts";
import { textOfChange, type Claims } from "./judge/change-watch.ts";
import type { Random } from "./random.ts";
import type { Simulation } from "./simulation.ts";

/** More events than the objects have between two pages. */
const STEPS = 10_000;

/** The pages of one shard, from an export on. */
interface Followed {
  /** Undefined: the consumer must start from an export. */
  position: number | undefined;
  /** The export has everything up to this position, and may have later changes. */
  exportedAt: number;
  claims: Claims;
}

/** Follows the change feed of all shards, and keeps the claims that follow from it. */
export class ChangeConsumer {
  readonly #simulation: Simulation;
  readonly #followed: Followed[];

  constructor(simulation: Simulation) {
    this.#simulation = simulation;
    this.#followed = simulation.coordinator.shards.map(() => ({
      position: undefined,
      exportedAt: 0,
      claims: new Map(),
    }));
  }

  /** Reads a page of some shard. */
  async read(random: Random): Promise<void> {
    const shard = random.between(0, this.#followed.length - 1);
    const followed = this.#of(shard);
    if (followed.position === undefined) return this.#start(shard, followed, random);
    if (random.chance(0.2)) await this.#readOfCell(shard, followed.position, random);
    await this.#readPage(shard, followed, random.between(1, 4));
  }

  /** Reads everything, without faults. */
  async catchUp(): Promise<void> {
    for (const [shard, followed] of this.#followed.entries())
      for (let isBehind = true; isBehind;) {
        if (followed.position === undefined) await this.#start(shard, followed);
        else isBehind = await this.#readPage(shard, followed, 100);
      }
  }

  #of(shard: number): Followed {
    const followed = this.#followed[shard];
    if (followed === undefined) throw new Error(`there is no shard ${shard}`);
    return followed;
  }

  /** Reads the newest position, and exports the claims some time later (F6). */
  async #start(shard: number, followed: Followed, random?: Random): Promise<void> {
    const page = await this.#ask(shard, null);
    if (typeof page === "string") return;
    if (random !== undefined) await this.#simulation.scheduler.sleep(random.exponential(500), undefined);
    // An overlapping call of this consumer may have started meanwhile, but its position is not lost.
    if (followed.position !== undefined) return;
    const exported = this.#simulation.judge.changes.newest(shard);
    followed.position = page.through;
    followed.exportedAt = exported.position;
    followed.claims = exported.claims;
  }

  /** Returns whether more may follow. */
  async #readPage(shard: number, followed: Followed, limit: number): Promise<boolean> {
    const { judge } = this.#simulation;
    const { position = 0 } = followed;
    const page = await this.#ask(shard, position, { limit });
    if (followed.position !== position) return true;
    if (page === "pruned") {
      judge.see("the change feed was pruned");
      followed.position = undefined;
    }
    if (typeof page === "string") return true;
    judge.check(
      "I44",
      page.after === position && page.through >= position,
      () => `a page after ${position} of shard ${shard} is from ${page.after} to ${page.through}`,
    );
    for (const change of page.changes) apply(followed.claims, change);
    if (page.changes.some(({ event }) => event === "granted")) judge.see("F3");
    followed.position = page.through;
    judge.changes.consumed(shard, page.through, followed.claims, page.through >= followed.exportedAt);
    judge.see("F4");
    return page.hasMore;
  }

  async #readOfCell(shard: number, position: number, random: Random): Promise<void> {
    const { judge, cells } = this.#simulation;
    const cell = random.pick(cells).id;
    const page = await this.#ask(shard, position, { cell });
    if (typeof page === "string") return;
    judge.changes.toldToCell(shard, cell, page);
  }

  async #ask(
    shard: number,
    after: number | null,
    filter: { limit?: number; cell?: string } = {},
  ): Promise<ChangesPage | "pruned" | "failed"> {
    const { limit = 100, cell = null } = filter;
    const fields = { after, cell, type: null, limit };
    const answer = await this.#simulation.operator.toShard<ChangesPage>(shard, "listChanges", fields);
    if (answer.kind === "ok") return answer.value;
    const isPruned = answer.kind === "refused" && answer.refusal.reason === "CHANGES_PRUNED";
    return isPruned ? "pruned" : "failed";
  }
}

/** Applies a change that may have been applied before, or may be older than the export. */
function apply(claims: Claims, change: Change): void {
  const { event, epoch, claim } = change;
  if (claim === undefined) return;
  const known = claims.get(claim.uuid);
  if (known !== undefined && known.epoch > epoch) return;
  if (event === "released") claims.delete(claim.uuid);
  else claims.set(claim.uuid, { epoch, text: textOfChange(change) });
}

/** Checks at the end of a run that a consumer that reads everything has all claims (F6). */
export async function checkConsumer(simulation: Simulation): Promise<void> {
  const { consumer } = simulation;
  if (consumer === undefined) return;
  await simulation.runUntil(consumer.catchUp());
  await simulation.pass(0, STEPS);
}
