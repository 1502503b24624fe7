import type { Snapshot } from "../../../src/coordinator/kernel/directory/messages.ts";
import type { Result } from "../../../src/coordinator/kernel/refusal.ts";
import type { CellStatus } from "../../../src/coordinator/kernel/messages.ts";
import type { RemovalProgress } from "../../../src/coordinator/capabilities/removal/messages.ts";
import type { PartStatus } from "../../../src/coordinator/capabilities/loss/messages.ts";
import { operator } from "../../support/ops.ts";
import { bucketType } from "../../support/types.ts";
import { activities } from "./activity.ts";
import type { Cell } from "./cell.ts";
import { read } from "./made-leases.ts";
import type { Part } from "./part.ts";
import { incarnationOf, stateOf } from "./part-state.ts";
import type { Random } from "./random.ts";
import type { Simulation } from "./simulation.ts";

// The last phase of some runs: an operator removes a cell (X2 to X5), and shards and the cell's ledger go
// back in time, before the removal has ended and once more afterwards. The operator reconciles them, goes on
// with the removal, and takes shards back into service, in any order. What the cell must not have in the end
// is read from the disks of the shards.

const PASS_STEPS = 20_000;
const MINUTE_MS = 60_000;
/** Longer than shards take to ask about every hold. */
const SWEPT_MS = 10 * MINUTE_MS;
const FIRST_CHANGES = 8;
const HELD_NAMES = 3;
const MOST_FIRST_STEPS = 4;
const MOST_ACTS = 12;
/** The calls after which a removal that makes no progress counts as stuck. */
const MOST_CALLS = 200;
const CALLS_WITH_FAULTS = 20;

interface ClaimRow {
  cell: string;
  bucket_type: number;
  canonical: string;
  epoch: number;
}

export async function removeWhileGoingBack(simulation: Simulation): Promise<void> {
  const stage = new Stage(simulation);
  await stage.makeNames();
  await stage.start();
  await stage.releaseSome();
  simulation.endJudging();
  stage.goBack();
  await stage.act();
  await stage.reconcileAll();
  await stage.remove();
  await stage.expectGone("removed");
  await stage.learn();
  stage.goBack();
  await stage.act();
  await stage.reconcileAll();
  await stage.finishAll();
  await stage.expectGone("in service again");
}

class Stage {
  readonly #simulation: Simulation;
  readonly #random: Random;
  readonly #cell: Cell;
  readonly #ledger: Part<object>;
  readonly #shards: readonly Part<object>[];
  /** The states of the parts from before the cell had its last names. */
  readonly #early = new Map<Part<object>, number>();
  /** The state of the ledger after the removal was approved, and before its first step. */
  #approved = 0;
  /** The states of shards in which they have a hold of a lease that is committed. */
  readonly #held = new Map<Part<object>, number[]>();
  /** The parts that went back, and were not reconciled since. */
  readonly #restored = new Set<Part<object>>();
  /** The claims of other cells that nothing but a removal could end. */
  #others = new Map<Part<object>, ClaimRow[]>();

  constructor(simulation: Simulation) {
    this.#simulation = simulation;
    this.#random = simulation.faults.stream("removal going back");
    this.#cell = this.#random.pick(simulation.cells);
    this.#ledger = simulation.coordinator.ledger(this.#cell.id);
    this.#shards = simulation.coordinator.shards;
  }

  async makeNames(): Promise<void> {
    for (const part of [this.#ledger, ...this.#shards]) this.#early.set(part, part.disk.version);
    for (let change = 0; change < FIRST_CHANGES; change += 1) {
      const kind = this.#random.weighted({ create: 5, rename: 2, replace: 2, destroy: 1 });
      await this.#run(activities[kind](this.#simulation, this.#cell, this.#random));
    }
    for (let held = 0; held < HELD_NAMES; held += 1) await this.#makeHeld(held);
  }

  /** Commits a lease, and remembers when its shard has the hold and does not know the decision (C3). */
  async #makeHeld(number: number): Promise<void> {
    const { faults, coordinator } = this.#simulation;
    const { api, caller, id } = this.#cell;
    const row = {
      type: bucketType("ROUTES"),
      canonical: `held-${number}`,
      value: `held-${number}`,
      subject: { type: "NAMESPACE" as const, id: "1" },
      source: { type: "RAILS_TABLE_ROUTES" as const, id: String(number) },
    };
    const lease = this.#random.uuid();
    const ops = this.#cell.opsOf({ creates: [row], destroys: [], replaces: [] });
    const begun = await this.#run(api.begin(id, caller, { lease, ops, allowMissing: false }));
    if (begun.kind !== "ok") return;
    faults.stopsExchanges = true;
    await this.#run(api.decide(id, caller, lease, "COMMITTED"));
    const shard = coordinator.shard(this.#simulation.shardOf(row));
    this.#held.set(shard, [...(this.#held.get(shard) ?? []), shard.disk.version]);
    faults.stopsExchanges = false;
  }

  /** From here on, the cell's process and its database are gone. */
  async start(): Promise<void> {
    const { judge } = this.#simulation;
    this.#cell.crash();
    this.#cell.local.rows.clear();
    for (const [name, owner] of judge.inUse) if (owner === this.#cell.id) judge.inUse.delete(name);
    judge.removing.add(this.#cell.id);
    await this.#pass(MINUTE_MS);
    await this.#run(this.#simulation.cron());
    await this.#pass(MINUTE_MS);
    for (let tries = 0; tries < MOST_CALLS && !(await this.#isReady()); tries += 1)
      await this.#pass(MINUTE_MS);
    this.#approved = this.#ledger.disk.version;
  }

  /** Some steps, with crashes and messages that are lost. */
  async releaseSome(): Promise<void> {
    const { faults } = this.#simulation;
    faults.areOff = this.#random.chance(0.5);
    const steps = this.#random.between(0, MOST_FIRST_STEPS);
    for (let step = 0; step < steps; step += 1) {
      faults.losesExchanges = this.#random.chance(0.2);
      if (this.#random.chance(0.3)) this.#random.pick([this.#ledger, ...this.#shards]).crash();
      await this.#step();
      faults.losesExchanges = false;
      if (this.#random.chance(0.5)) await this.#pass(this.#random.exponential(MINUTE_MS));
    }
    this.#endFaults();
  }

  goBack(): void {
    const { faults } = this.#simulation;
    faults.areOff = this.#random.chance(0.5);
    faults.stopsInquiries = this.#random.chance(0.4);
    // Then only the directory knows of the removal.
    if (faults.stream("backups of D1").chance(0.5)) this.#simulation.cronJob.record.forgetLedgers();
    const parts = [this.#ledger, ...this.#shards];
    for (const part of this.#random.some(parts, parts.length)) {
      part.goBack(this.#drawVersion(part));
      this.#restored.add(part);
    }
    this.#others = new Map(this.#shards.map((shard) => [shard, this.#settledClaimsOfOthers(shard)]));
  }

  #drawVersion(part: Part<object>): number {
    const marks = part === this.#ledger ? [this.#approved] : (this.#held.get(part) ?? []);
    return marks.length > 0 && this.#random.chance(0.4)
      ? this.#random.pick(marks)
      : this.#random.between(this.#early.get(part) ?? 0, part.disk.version);
  }

  /** What an operator does before all parts are reconciled. */
  async act(): Promise<void> {
    if (this.#random.chance(0.5)) this.#simulation.isolate.restart();
    const acts = this.#random.chance(0.3) ? 0 : this.#random.between(1, MOST_ACTS);
    for (let act = 0; act < acts; act += 1) {
      const kinds = { step: 4, cron: 1, reconcile: 3, finish: 2, crash: 1, pass: 1 };
      switch (this.#random.weighted(kinds)) {
        case "step":
          await this.#step();
          break;
        case "cron":
          await this.#visit();
          break;
        case "reconcile":
          await this.#reconcile(this.#random.pick([this.#ledger, ...this.#shards]));
          break;
        case "finish":
          await this.#finish(this.#random.pick(this.#shards));
          break;
        case "crash":
          this.#random.pick([this.#ledger, ...this.#shards]).crash();
          break;
        case "pass":
          await this.#pass(this.#random.exponential(this.#random.pick([1_000, MINUTE_MS])));
      }
    }
  }

  /** The cron visits the parts. A ledger that lost its removal notices it then, at the latest (X5). */
  async #visit(): Promise<void> {
    const isMarked = typeof (await this.#removedAtMs()) === "number";
    await this.#run(this.#simulation.cronJob.run());
    if (!isMarked || !this.#simulation.faults.areOff) return;
    const isRemoved = read(this.#ledger, "meta", "name = 'cell_state' AND value = 'REMOVED'").length > 0;
    this.#expect(isRemoved || isLost(this.#ledger), () => `${this.#ledger.name} has not noticed its loss`);
  }

  /** Of a part that has noticed nothing, only the operator knows that it went back (H4). */
  async reconcileAll(): Promise<void> {
    const parts = this.#random.shuffle([this.#ledger, ...this.#shards]);
    const isLeft = (part: Part<object>): boolean => isLost(part) || this.#restored.has(part);
    // A part that was reconciled may tell others what they have lost.
    for (let round = 0; round < MOST_CALLS && parts.some(isLeft); round += 1) {
      for (const part of parts) await this.#reconcile(part);
      // A partition lasts until it is ended, or until time has passed.
      if (round >= CALLS_WITH_FAULTS) this.#endFaults();
    }
    for (const part of parts) this.#expect(!isLeft(part), () => `${part.name} stays lost`);
  }

  /**
   * A part whose operator knew of its loss may have accepted less than a caller has seen, who then tells it
   * (H4).
   */
  async #reconcileAgain(): Promise<void> {
    for (const part of [this.#ledger, ...this.#shards]) if (isLost(part)) await this.#reconcile(part);
  }

  /** Goes on until a step has released nothing, and says that the cell is removed. */
  async remove(): Promise<void> {
    for (let calls = 0; calls < MOST_CALLS; calls += 1) {
      if (this.#random.chance(0.1)) await this.#finish(this.#random.pick(this.#shards));
      const step = (await this.#isReady()) ? await this.#step() : undefined;
      if (step?.ok === true && step.value.state === "REMOVED" && step.value.released === 0)
        return this.#endFaults();
      if (step?.ok === true) continue;
      if (calls >= CALLS_WITH_FAULTS) this.#endFaults();
      await this.#reconcileAgain();
      await this.#pass(MINUTE_MS);
      await this.#run(this.#simulation.cronJob.run());
    }
    this.#expect(false, () => "the removal does not end");
  }

  #endFaults(): void {
    const { faults } = this.#simulation;
    faults.areOff = true;
    faults.partitions = [];
    faults.stopsInquiries = false;
  }

  /** The cell has no claim and no hold, and will have none. The other cells have all of theirs. */
  async expectGone(when: string): Promise<void> {
    this.#expectNone("claim", when);
    await this.#pass(SWEPT_MS);
    await this.#run(this.#simulation.cronJob.run());
    await this.#pass(SWEPT_MS);
    this.#expectNone("claim", when);
    this.#expectNone("hold", when);
    for (const [shard, claims] of this.#others)
      for (const claim of claims)
        this.#expect(
          this.#find(shard, claim)?.epoch === claim.epoch,
          () => `cell ${claim.cell} has lost ${claim.canonical}`,
        );
    this.#simulation.judge.see("X4");
  }

  /** The directory learns of the removal from the cron, and takes no word of it back (X5). */
  async learn(): Promise<void> {
    await this.#run(this.#simulation.cronJob.run());
    await this.#run(this.#simulation.cronJob.run());
    this.#expect(typeof (await this.#removedAtMs()) === "number", () => "the directory does not mark it");
  }

  /** Shards are taken back into service as soon as they let the operator do it. */
  async finishAll(): Promise<void> {
    this.#endFaults();
    for (let round = 0; round < MOST_CALLS; round += 1) {
      let isFinished = true;
      for (const shard of this.#random.shuffle(this.#shards))
        if (!(await this.#finish(shard))) isFinished = false;
      if (isFinished) return;
      const step = await this.#step();
      if (step?.ok === true && step.value.released > 0) continue;
      await this.#reconcileAgain();
      await this.#pass(MINUTE_MS);
      await this.#run(this.#simulation.cronJob.run());
    }
    this.#expect(false, () => "a shard cannot be taken back into service");
  }

  /** Has the removal approved, unless it has started. What a ledger has forgotten is done again. */
  async #isReady(): Promise<boolean> {
    const before = await this.#status();
    if (before === undefined) return false;
    if (before.state === "REMOVING" || before.state === "REMOVED") return true;
    if (before.state !== "DRAINING") {
      const { stateVersion } = before;
      await this.#toLedger("setState", { state: "DRAINING", stateVersion });
    }
    for (const { lease } of read<{ lease: string }>(this.#ledger, "lease", "state = 'GRANTED'"))
      await this.#toLedger("decide", {
        caller: this.#cell.caller,
        requestId: "",
        lease,
        outcome: this.#random.pick(["COMMITTED", "ROLLED_BACK"] as const),
      });
    const status = await this.#status();
    if (status === undefined) return false;
    const { position } = status;
    const approved = await this.#toLedger<null>("approveRemoval", { position, records: 0 });
    return approved?.ok === true;
  }

  async #step(): Promise<Result<RemovalProgress> | undefined> {
    const status = await this.#status();
    if (status === undefined) return undefined;
    const { stateVersion } = status;
    const limit = this.#random.between(1, 3);
    return this.#toLedger<RemovalProgress>("removalStep", { stateVersion, limit });
  }

  /** Accepts a loss that the part has noticed, or that the operator knows of. */
  async #reconcile(part: Part<object>): Promise<void> {
    if (!isLost(part) && !this.#restored.has(part)) return;
    const removedAtMs = await this.#removedAtMs();
    if (removedAtMs === undefined) return;
    const declared = isLost(part) ? {} : { declared: { incarnation: incarnationOf(part) } };
    const more =
      part === this.#ledger
        ? { revokedKeys: [], removedAtMs }
        : { cells: [...this.#simulation.coordinator.ledgers.keys()] };
    const done = await this.#send(part, "reconcile", { dryRun: false, operator, ...declared, ...more });
    if (done?.ok !== true) return;
    this.#restored.delete(part);
    this.#simulation.judge.see(
      `a removal outlives a ${part === this.#ledger ? "ledger" : "shard"} that went back`,
    );
  }

  /** Takes a shard back into service. Returns whether it is. */
  async #finish(shard: Part<object>): Promise<boolean> {
    const removedAtMs = await this.#removedAtMs();
    if (removedAtMs === undefined) return false;
    const removedCells = removedAtMs === null ? [] : [this.#cell.id];
    const done = await this.#send<PartStatus>(shard, "finishReconciliation", { operator, removedCells });
    if (done?.ok === false && done.refusal.detail.includes("which was removed"))
      this.#simulation.judge.see("a shard with names of a removed cell stays out of service");
    return done?.ok === true && done.value.state === "complete";
  }

  #expectNone(table: "claim" | "hold", when: string): void {
    for (const shard of this.#shards) {
      const [left] = read<ClaimRow>(shard, table, "cell = ?", this.#cell.id);
      this.#expect(
        left === undefined,
        () => `${when}, but ${shard.name} has its ${table}: ${left?.canonical}`,
      );
    }
  }

  #find(shard: Part<object>, { bucket_type: type, canonical }: ClaimRow): ClaimRow | undefined {
    return read<ClaimRow>(shard, "claim", "bucket_type = ? AND canonical = ?", String(type), canonical)[0];
  }

  /** A claim that nothing holds stays, because no other cell works any more. */
  #settledClaimsOfOthers(shard: Part<object>): ClaimRow[] {
    const held = new Set(
      read<ClaimRow>(shard, "hold", "true").map((row) => `${row.bucket_type} ${row.canonical}`),
    );
    return read<ClaimRow>(shard, "claim", "cell <> ?", this.#cell.id).filter(
      (row) => !held.has(`${row.bucket_type} ${row.canonical}`),
    );
  }

  async #status(): Promise<CellStatus | undefined> {
    const status = await this.#toLedger<CellStatus>("status", {});
    return status?.ok === true ? status.value : undefined;
  }

  /** When the cell was removed, as the directory has it. Undefined: it does not answer. */
  async #removedAtMs(): Promise<number | null | undefined> {
    const { directory } = this.#simulation.coordinator;
    const snapshot = await this.#send<Snapshot>(directory, "snapshot", {});
    if (snapshot?.ok !== true) return undefined;
    return snapshot.value.cells.find(({ cell }) => cell === this.#cell.id)?.removedAtMs ?? null;
  }

  #toLedger<T>(method: string, fields: object): Promise<Result<T> | undefined> {
    return this.#send<T>(this.#ledger, method, fields);
  }

  #send<T>(part: Part<object>, method: string, fields: object): Promise<Result<T> | undefined> {
    return this.#run(this.#simulation.operator.reply(part, method, fields) as Promise<Result<T> | undefined>);
  }

  #pass(ms: number): Promise<void> {
    return this.#simulation.pass(ms, PASS_STEPS);
  }

  #run<T>(work: Promise<T>): Promise<T> {
    return this.#simulation.runUntil(work);
  }

  #expect(isRight: boolean, message: () => string): void {
    this.#simulation.judge.check("I38", isRight, () => `cell ${this.#cell.id}: ${message()}`);
  }
}

const isLost = (part: Part<object>): boolean => stateOf(part) === "lost";
