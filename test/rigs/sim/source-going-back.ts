import type { Growth } from "../../../src/coordinator/capabilities/growth/messages.ts";
import { shardOf } from "../../../src/coordinator/kernel/placement.ts";
import type { Result } from "../../../src/coordinator/kernel/refusal.ts";
import { operator } from "../../support/ops.ts";
import { bucketType } from "../../support/types.ts";
import type { Cell } from "./cell.ts";
import type { LocalRow, Name } from "./local.ts";
import { opsOf, read } from "./made-leases.ts";
import type { Part } from "./part.ts";
import { incarnationOf, stateOf } from "./part-state.ts";
import type { GrowthModules, SimulatedDriver } from "./projection.ts";
import type { Random } from "./random.ts";
import type { Simulation } from "./simulation.ts";

// The last phase of some runs: the deployment gets more shards, and shards that give names away go back in
// time before the cut (G7). They notice it before they have handed over, between two hand-overs, or only at
// the end of the growth. What they have lost is computed from the leases that this phase has made. A shard
// that goes back once more, after the growth, is no business of the new ones.

const PASS_STEPS = 20_000;
/** Longer than a ledger takes to store that its decisions are applied. */
const SETTLED_MS = 20_000;
const PAUSE_MS = 2_000;
/** More steps than the growth takes. */
const MOST_STEPS = 200;

export async function sourcesGoBack(simulation: Simulation, added: number): Promise<void> {
  // The judge does not watch the new shards.
  simulation.endJudging();
  const stage = new Stage(simulation, added, await simulation.cronJob.growthDriver());
  await stage.makeNames(4);
  await stage.copy();
  await stage.goBack();
  if (!(await stage.cut())) return;
  await stage.handOver();
  await stage.expectKept();
  await stage.reconcile();
  await stage.loseLater();
}

interface Call {
  modules: GrowthModules;
  driver: SimulatedDriver;
}

interface OwnedName {
  cell: Cell;
  name: Name;
  /** The shard that had it first. */
  source: number;
}

class Stage {
  readonly #simulation: Simulation;
  readonly #random: Random;
  readonly #from: number;
  readonly #to: number;
  /** Names whose commits were acknowledged, and that shards have lost. */
  #lost: OwnedName[] = [];
  readonly #restored = new Set<number>();
  readonly #call: Call;
  #names = 0;

  constructor(simulation: Simulation, added: number, call: Call) {
    this.#call = call;
    this.#simulation = simulation;
    this.#random = simulation.faults.stream("sources going back");
    this.#from = simulation.coordinator.shards.length;
    this.#to = this.#from + added;
    simulation.coordinator.addShards(this.#to);
  }

  /** Cells become the owners of new names. */
  async makeNames(most: number): Promise<OwnedName[]> {
    const made: OwnedName[] = [];
    for (let count = 0; count < most; count += 1) {
      const cell = this.#random.pick(this.#simulation.cells);
      const row = this.#newRow();
      if (await this.#own(cell, row)) made.push({ cell, name: row, source: this.#simulation.shardOf(row) });
    }
    return made;
  }

  async #own(cell: Cell, name: Name, isVerification = false): Promise<boolean> {
    const lease = this.#random.uuid();
    const begun = await this.#begin(cell, name, isVerification, lease);
    if (begun?.ok !== true) return false;
    const decided = await this.#send(this.#simulation.coordinator.ledger(cell.id), "decide", {
      caller: cell.caller,
      lease,
      outcome: "COMMITTED",
    });
    return decided?.ok === true;
  }

  async copy(): Promise<void> {
    await this.#pass(SETTLED_MS);
    await this.#change("startGrowth", { to: this.#to });
    for (let step = 0; step < MOST_STEPS && !(await this.#isCopied()); step += 1) await this.#step();
  }

  async #isCopied(): Promise<boolean> {
    const { driver, modules } = this.#call;
    const growth = await this.#growth();
    if (growth === null) return false;
    return modules.isReadyToCut(await this.#run(modules.readProgress(driver, growth)));
  }

  /** Some shards forget the names that cells get meanwhile. Nobody has noticed yet. */
  async goBack(): Promise<void> {
    const sources = this.#simulation.coordinator.shards;
    const versions = sources.map(({ disk }) => disk.version);
    const made = await this.makeNames(this.#random.between(2, 8));
    if (this.#random.chance(0.5)) await this.#pass(PAUSE_MS);
    for (const index of sources.keys())
      if (this.#random.chance(0.7)) this.#restore(index, versions[index] ?? 0);
    this.#lost = made.filter((each) => this.#restored.has(each.source) && !this.#has(each));
  }

  #restore(index: number, version: number): void {
    this.#restored.add(index);
    this.#part(index).goBack(version);
  }

  #has({ source, name: { canonical } }: OwnedName): boolean {
    return ["claim", "hold"].some(
      (table) => read(this.#part(source), table, "canonical = ?", canonical).length > 0,
    );
  }

  /** Returns whether the cut was ordered. A shard that has noticed its loss first is in its way (G1). */
  async cut(): Promise<boolean> {
    const { driver, modules } = this.#call;
    for (let step = 0; step < MOST_STEPS && !(await this.#isCopied()); step += 1) await this.#step();
    const growth = await this.#growth();
    if (growth === null) return false;
    const { shards } = await this.#run(modules.readProgress(driver, growth));
    const sources = shards.flatMap(({ progress }) => progress ?? []);
    const ordered = await this.#change("cutGrowth", { sources });
    if (ordered?.ok !== true) return false;
    await this.#run(modules.completeCut(driver, ordered.value));
    return true;
  }

  /**
   * Goes on until the growth has ended. Some new shards get nothing for a time. A ledger meets a source that
   * went back at any time, or only the last step tells it. The operator accepts losses some time later.
   */
  async handOver(): Promise<void> {
    const { faults, judge } = this.#simulation;
    const cutOff = this.#random.chance(0.5) ? this.#random.between(this.#from, this.#to - 1) : undefined;
    if (cutOff !== undefined) faults.getNoNames.add(`shard ${cutOff}`);
    const noticesAt = this.#random.chance(0.6) ? this.#random.between(0, 12) : undefined;
    const healsAt = this.#random.between(3, 15);
    for (let step = 0; (await this.#growth()) !== null; step += 1) {
      judge.check("I49", step < MOST_STEPS, () => "a growth whose sources went back does not end");
      if (step >= healsAt) faults.getNoNames.clear();
      if (step === noticesAt) await this.#meet();
      for (const index of this.#restored)
        if (stateOf(this.#part(index)) === "lost" && this.#random.chance(0.4)) await this.#accept(index);
      if (this.#random.chance(0.5)) await this.#stepOne();
      else await this.#step();
      if (this.#random.chance(0.1)) this.#part(this.#random.between(0, this.#to - 1)).crash();
      await this.#pass(PAUSE_MS);
    }
    this.#simulation.coordinator.hasGrown(this.#to);
  }

  /** Every ledger calls every source that went back. */
  async #meet(): Promise<void> {
    for (const cell of this.#simulation.cells)
      for (const index of this.#restored)
        await this.#begin(
          cell,
          this.#newRow((shard) => shard === index),
        );
  }

  async #accept(index: number): Promise<void> {
    const { directory, ledgers } = this.#simulation.coordinator;
    // As the Worker does, which may learn of the new placement from it.
    await this.#send(directory, "snapshot", {});
    const cells = [...ledgers.keys()];
    const message = { dryRun: false, operator, cells };
    // A source that has handed over, or may have, refuses while a new shard is complete.
    const isGrowing = (await this.#growth()) !== null;
    if (isGrowing && this.#random.chance(0.7)) await this.#declareNewShards(message);
    const done = await this.#send(this.#part(index), "reconcile", message);
    if (done?.ok === false && done.refusal.code === "FAILED_PRECONDITION") {
      this.#simulation.judge.see("new shards kept a source from accepting its loss");
      await this.#declareNewShards(message);
      await this.#send(this.#part(index), "reconcile", message);
    }
    // An operator may finish the shard at once: it has no more of the names.
    if (this.#isFenced(index) && this.#random.chance(0.3)) await this.#finish(index);
  }

  /** An operator declares the new shards lost, because names that a source has lost may be missing there. */
  async #declareNewShards(message: object): Promise<void> {
    for (let shard = this.#from; shard < this.#to; shard += 1) {
      if (stateOf(this.#part(shard)) !== "complete") continue;
      const declared = { incarnation: incarnationOf(this.#part(shard)) };
      await this.#send(this.#part(shard), "reconcile", { ...message, declared });
    }
  }

  /** Nobody else gets a name that a source has lost and a new shard serves. */
  async expectKept(): Promise<void> {
    const { judge, cells } = this.#simulation;
    const moved = this.#lost.filter(({ name, source }) => this.#shardOf(name) !== source);
    for (const { cell, name } of moved) {
      const stranger = this.#random.pick(cells.filter((each) => each !== cell));
      const taken = await this.#begin(stranger, name);
      judge.check(
        "I54",
        taken?.ok !== true,
        () => `cell ${stranger.id} was granted ${name.canonical} of cell ${cell.id}, which a source has lost`,
      );
      judge.see("a source has lost a name that moves");
    }
    for (const { cell, name } of moved) await this.#own(cell, name, true);
  }

  /** All shards are complete again. */
  async reconcile(): Promise<void> {
    for (let index = 0; index < this.#to; index += 1) await this.#finish(index);
    for (let index = 0; index < this.#to; index += 1)
      this.#check(index, () => "is not complete after its reconciliation");
  }

  /** A source goes back after the growth has ended. */
  async loseLater(): Promise<void> {
    this.#restored.clear();
    const index = this.#random.between(0, this.#from - 1);
    const { version } = this.#part(index).disk;
    for (let tries = 0; tries < 3; tries += 1)
      for (const cell of this.#simulation.cells)
        await this.#own(
          cell,
          this.#newRow((shard) => shard === index),
        );
    this.#restore(index, version);
    await this.#meet();
    if (stateOf(this.#part(index)) !== "lost") return;
    await this.#accept(index);
    await this.#pass(SETTLED_MS);
    this.#simulation.judge.see("a source has gone back after a growth");
    for (let shard = this.#from; shard < this.#to; shard += 1)
      this.#check(shard, () => `is reconciling because of what shard ${index} has lost after the growth`);
  }

  #check(index: number, message: () => string): void {
    const isComplete = stateOf(this.#part(index)) === "complete";
    this.#simulation.judge.check("I54", isComplete, () => `shard ${index} ${message()}`);
  }

  #isFenced(index: number): boolean {
    const [meta] = read<{ value: string }>(this.#part(index), "meta", "name = 'growth_source'");
    return meta !== undefined && (JSON.parse(meta.value) as { isFenced: boolean }).isFenced;
  }

  async #finish(index: number): Promise<void> {
    await this.#send(this.#part(index), "finishReconciliation", { operator, removedCells: [] });
  }

  async #step(): Promise<void> {
    const { driver, modules } = this.#call;
    const growth = await this.#growth();
    if (growth !== null)
      await this.#run(modules.stepGrowth(driver, growth, driver.clock.now() + 1_000, this.#rows()));
  }

  async #stepOne(): Promise<void> {
    const { driver } = this.#call;
    const growth = await this.#growth();
    const shard = driver.objects.shard(this.#random.between(0, this.#from - 1));
    if (growth === null) return;
    const step = shard["growStep"]?.({ ...driver.envelope, growth, rows: this.#rows() });
    await this.#run(Promise.resolve(step).catch(() => {}));
  }

  #rows(): number {
    return this.#random.pick([2, 5, 100]);
  }

  async #growth(): Promise<Growth | null> {
    const { driver, modules } = this.#call;
    const growth = await this.#run(modules.readGrowth(driver));
    return growth.ok ? growth.value : null;
  }

  async #change(method: string, fields: object): Promise<Result<Growth> | undefined> {
    const { driver, modules } = this.#call;
    const seen = await this.#run(modules.readSeen(driver.database));
    const id = (await this.#growth())?.id;
    const growthCopiedAt = seen.ok ? seen.value.growthPosition : 0;
    const message = { ...driver.envelope, operator, growthCopiedAt, id, ...fields };
    return this.#run(Promise.resolve(driver.objects.directory()[method]?.(message)));
  }

  #begin(cell: Cell, name: Name, isVerification = false, lease = this.#random.uuid()) {
    return this.#send(this.#simulation.coordinator.ledger(cell.id), "begin", {
      caller: cell.caller,
      lease,
      ops: opsOf(cell, { ...this.#newRow(), ...name, value: name.canonical }),
      allowMissing: false,
      payloadHash: lease,
      ...(isVerification ? { isVerification } : {}),
    });
  }

  /** @param fits says of the shard with the last placement whether the name is wanted */
  #newRow(fits: (shard: number) => boolean = () => true): LocalRow {
    for (;;) {
      this.#names += 1;
      const id = String(950_000 + this.#names);
      const row: LocalRow = {
        type: bucketType("ROUTES"),
        canonical: `source-${this.#names}`,
        value: `source-${this.#names}`,
        subject: { type: "NAMESPACE", id },
        source: { type: "RAILS_TABLE_ROUTES", id },
      };
      if (fits(this.#shardOf(row))) return row;
    }
  }

  #shardOf({ type, canonical }: Name): number {
    return shardOf(type, canonical, this.#to);
  }

  #part(index: number): Part<object> {
    return this.#simulation.coordinator.shard(index);
  }

  #pass(ms: number): Promise<void> {
    return this.#simulation.pass(ms, PASS_STEPS);
  }

  #run<T>(work: Promise<T>): Promise<T> {
    return this.#simulation.runUntil(work);
  }

  #send(part: Part<object>, method: string, fields: object): Promise<Result<unknown> | undefined> {
    return this.#run(this.#simulation.operator.reply(part, method, fields));
  }
}
