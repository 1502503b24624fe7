import type { Growth } from "../../../src/coordinator/capabilities/growth/messages.ts";
import type { ChangesPage } from "../../../src/coordinator/capabilities/feed/messages.ts";
import type { Change } from "../../../src/coordinator/capabilities/feed/messages.ts";
import { placementOf, shardOf } from "../../../src/coordinator/kernel/placement.ts";
import { refused, type Result } from "../../../src/coordinator/kernel/refusal.ts";
import {
  readChanges,
  type ReadShards,
} from "../../../src/coordinator/capabilities/feed/edge/read-changes.ts";
import type { Positions } from "../../../src/users/router/positions.ts";
import { textOfChange, type Claims } from "./judge/change-watch.ts";
import { drawRow } from "./draw-rows.ts";
import { nameKey, type Name } from "./local.ts";
import type { Random } from "./random.ts";
import type { Simulation } from "./simulation.ts";

/** More events than the objects have between two pages. */
const STEPS = 10_000;
/** More pages than the changes of a run fill. */
const MOST_PAGES = 1_000;

/** What a consumer has made of an export and of the pages since. */
interface Copy {
  positions: Positions;
  /** The export has everything up to these positions, and may have later changes. */
  exportedAt: Positions;
  claims: Claims;
  /** The last epoch that was told of a claim, and of a name. */
  told: Map<string, number>;
}

/** Follows the change feed through an isolate, and keeps the claims that follow from it. */
export class ChangeConsumer {
  readonly #simulation: Simulation;
  /** Undefined: the consumer must start from an export. */
  #copy: Copy | undefined;
  /** The shard that the consumer cannot reach. */
  #missed: number | undefined;

  constructor(simulation: Simulation) {
    this.#simulation = simulation;
  }

  /** Reads a page, or starts from an export. */
  async read(random: Random): Promise<void> {
    const copy = this.#copy;
    if (copy === undefined) return this.#start(random);
    if (random.chance(0.2)) await this.#readOfCell(copy.positions, random);
    await this.#readPage(copy, random.pick([1, 2, 4, 8]));
  }

  /** A name changes before and after it moves, while the consumer cannot reach the shard that had it. */
  missMove({ from, to }: Growth): void {
    const { names, scheduler, faults, judge } = this.#simulation;
    const random = faults.stream("missed moves");
    const moving = names.filter(
      ({ type, canonical }) => shardOf(type, canonical, from) !== shardOf(type, canonical, to),
    );
    if (moving.length === 0) return;
    const name = random.pick(moving);
    this.#missed = shardOf(name.type, name.canonical, from);
    const untilMs = scheduler.nowMs + random.exponential(30_000);
    const act = (hasMoved: boolean): void => {
      const isServed = judge.serversOf(name).some((shard) => shard !== this.#missed);
      const isOver = scheduler.nowMs > untilMs || (hasMoved && random.chance(0.2));
      if (isOver || faults.areOff) this.#missed = undefined;
      else scheduler.after(random.exponential(200), undefined, () => act(isServed));
      if (!faults.areOff) this.#simulation.spawn(this.#change(name, random));
    };
    act(false);
  }

  async #change(name: Name, random: Random): Promise<void> {
    const { cells, judge } = this.#simulation;
    const owner = judge.inUse.get(nameKey(name));
    const cell = cells.find(({ id }) => id === owner) ?? random.pick(cells);
    if (!cell.isUp || cell.isLocked(name)) return;
    const row = drawRow(name, cell, random);
    const changed = owner === undefined ? { creates: [row], replaces: [] } : { creates: [], replaces: [row] };
    await cell.update({ ...changed, destroys: [], allowMissing: false, isAbandoned: false });
  }

  /** Reads everything, without faults. */
  async catchUp(): Promise<void> {
    const { judge } = this.#simulation;
    for (let pages = 0, isBehind = true; isBehind; pages += 1) {
      judge.check("I44", pages < MOST_PAGES, () => "the change feed does not end");
      if (this.#copy === undefined) await this.#start();
      else isBehind = await this.#readPage(this.#copy, 100);
    }
    if (this.#copy !== undefined) judge.changes.consumed(this.#copy.positions, this.#copy.claims, true);
  }

  /** Reads the newest positions, and exports the claims some time later (F6). */
  async #start(random?: Random): Promise<void> {
    const page = await this.#ask(undefined, 100);
    if (!page.ok) return;
    if (random !== undefined) await this.#simulation.scheduler.sleep(random.exponential(500), undefined);
    // An overlapping call of this consumer may have started meanwhile, but its positions are not lost.
    if (this.#copy !== undefined) return;
    const { positions: exportedAt, claims } = this.#simulation.judge.changes.exported();
    this.#copy = { positions: page.value.positions, exportedAt, claims, told: new Map() };
  }

  /** Returns whether more may follow. */
  async #readPage(copy: Copy, limit: number): Promise<boolean> {
    const { judge } = this.#simulation;
    const { positions } = copy;
    const read = await this.#ask(positions, limit);
    // An overlapping call has read the same page.
    if (this.#copy !== copy || copy.positions !== positions) return true;
    if (!read.ok) {
      if (read.refusal.reason !== "CHANGES_PRUNED") return true;
      judge.see("the change feed was pruned");
      this.#copy = undefined;
      return true;
    }
    copy.positions = read.value.positions;
    for (const { shard, page } of read.value.pages) {
      if (!positions.has(shard)) judge.see("the change feed goes on to a new shard");
      for (const change of page.changes) this.#apply(shard, copy, change);
      if (page.changes.some(({ event }) => event === "granted")) judge.see("F3");
    }
    const isComplete = [...copy.exportedAt].every(([shard, at]) => (copy.positions.get(shard) ?? 0) >= at);
    judge.changes.consumed(copy.positions, copy.claims, isComplete);
    judge.see("F4");
    return read.value.hasMore || read.value.unavailable.length > 0;
  }

  async #readOfCell(positions: Positions, random: Random): Promise<void> {
    const { judge, cells } = this.#simulation;
    const cell = random.pick(cells).id;
    const read = await this.#ask(positions, 100, cell);
    if (!read.ok) return;
    for (const { shard, page } of read.value.pages) judge.changes.toldToCell(shard, cell, page);
  }

  /** Reads a page as the route does, with the placement that the isolate has when it begins. */
  #ask(after: Positions | undefined, limit: number, cell: string | null = null) {
    const { isolate, coordinator, operator } = this.#simulation;
    const { shards } = isolate;
    const fields = { placement: placementOf(shards), cell, type: null };
    const read: ReadShards = (asked) =>
      Promise.all(
        asked.map(async ({ shard, ...share }) => {
          if (shard === this.#missed) return refused("UNAVAILABLE", `shard ${shard} cannot be reached`);
          const part = coordinator.shard(shard);
          const reply = await operator.reply(part, "listChanges", { ...fields, ...share });
          return this.#checked(shard, share.after, reply as Result<ChangesPage> | undefined);
        }),
      );
    return readChanges(read, { shards, limit, fanOut: coordinator.limits.fanOut }, after);
  }

  /** Checks what one shard has answered (F4). */
  #checked(shard: number, after: number | null, reply: Result<ChangesPage> | undefined): Result<ChangesPage> {
    const { judge } = this.#simulation;
    if (reply === undefined) return refused("UNAVAILABLE", `shard ${shard} did not answer`);
    if (!reply.ok) {
      if (reply.refusal.reason === "CHANGES_PRUNED") judge.changes.refused(shard, after ?? 0);
      return reply;
    }
    const page = reply.value;
    const positions = [page.after, ...page.changes.map(({ position }) => position), page.through];
    judge.check(
      "I44",
      (after === null || page.after === after) &&
        positions.every((position, index) => position >= (positions[index - 1] ?? 0)),
      () => `a page after ${after} of shard ${shard} has the positions ${positions.join(", ")}`,
    );
    return reply;
  }

  /** Applies a change that may be older than the export. */
  #apply(shard: number, { claims, told }: Copy, change: Change): void {
    const { judge } = this.#simulation;
    const { event, epoch, claim } = change;
    if (claim === undefined) return;
    const { type, details } = claim;
    const names = details === null ? [] : [nameKey({ type, ...details })];
    for (const key of [claim.uuid, ...names]) {
      const last = told.get(key);
      // The end of a claim has the epoch of the claim, so it counts as a later one.
      const next = event === "released" ? epoch + 0.5 : epoch;
      judge.check(
        "I44",
        last === undefined || next > last,
        () => `shard ${shard} told ${JSON.stringify(change)}, but epoch ${last} of ${key} was told before`,
      );
      told.set(key, next);
    }
    const known = claims.get(claim.uuid);
    if (known !== undefined && known.epoch > epoch) return;
    if (event === "released") claims.delete(claim.uuid);
    else claims.set(claim.uuid, { epoch, text: textOfChange(change) });
  }
}

/** Checks at the end of a run that a consumer that reads everything has all claims (F6). */
export async function checkConsumer(simulation: Simulation): Promise<void> {
  const { consumer } = simulation;
  if (consumer === undefined) return;
  await simulation.runUntil(consumer.catchUp());
  await simulation.pass(0, STEPS);
}
