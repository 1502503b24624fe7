import type { AuditAction } from "../../../src/coordinator/capabilities/audit/audit.ts";
import type { Result } from "../../../src/coordinator/kernel/refusal.ts";
import type { ReconcileLedger } from "../../../src/coordinator/capabilities/loss/messages.ts";
import { operator } from "../../support/ops.ts";
import type { Cell } from "./cell.ts";
import type { LocalRow, Name } from "./local.ts";
import { opsOf, read, type Made } from "./made-leases.ts";
import type { Part } from "./part.ts";
import { incarnationOf, stateOf } from "./part-state.ts";
import type { Random } from "./random.ts";
import type { Simulation } from "./simulation.ts";

// After some parts went back in time and noticed it, an operator reconciles them (H6, H7). Of some parts that
// have noticed nothing, only the operator knows that they went back (H4). The leases that
// were committed stand for the cells' rows: each cell verifies that it has their names.

/** Longer than the shards take to ask the ledgers about old holds. */
const SWEPT_MS = 30_000;
const PASS_STEPS = 20_000;

/** Time in which a shard asks others whether they still have names for it. */
const WAKING_MS = 5_000;
const FINISHES = 3;

export class Reconciling {
  readonly #simulation: Simulation;
  readonly #random: Random;
  /** The leases that were made before the parts went back. */
  readonly #made: readonly Made[];
  /** The parts that an operator declares lost, although they have noticed nothing. */
  readonly #unaware: Set<Part<object>>;
  readonly #newName: () => LocalRow;

  constructor(
    simulation: Simulation,
    random: Random,
    made: readonly Made[],
    restored: ReadonlySet<Part<object>>,
    newName: () => LocalRow,
  ) {
    this.#simulation = simulation;
    this.#random = random;
    this.#made = made;
    this.#unaware = new Set(
      [...restored].filter((part) => stateOf(part) === "complete" && random.chance(0.5)),
    );
    this.#newName = newName;
  }

  async run(): Promise<void> {
    const { shards, ledgers } = this.#simulation.coordinator;
    if (this.#simulation.grower !== undefined) await this.#wake(shards);
    const isReconciled = (part: Part<object>): boolean => stateOf(part) === "lost" || this.#unaware.has(part);
    const lostLedgers = [...ledgers].filter(([, part]) => isReconciled(part));
    // The shards that got names from a shard come before it, because it refuses while one is complete (G7).
    for (const source of shards.filter(isReconciled))
      for (const index of newShardsOf(source)) {
        const shard = this.#simulation.coordinator.shard(index);
        if (stateOf(shard) === "complete") this.#unaware.add(shard);
      }
    const lostShards = shards.filter(isReconciled).toReversed();
    const aware = lostLedgers.filter(([, part]) => !this.#unaware.has(part));
    const held = this.#heldBy(new Set(aware.map(([cell]) => cell)));
    const accepted = lostShards.map((part) => () => this.#acceptLoss(part));
    // A shard that went back to a growth lists no holds before it has accepted its loss (G8).
    const isGrown = this.#simulation.grower !== undefined;
    if (isGrown) {
      for (const accept of accepted) await accept();
      await this.#wake(shards);
    }
    const steps = [
      ...lostLedgers.map(([cell, part]) => async () => {
        await this.#reconcileLedger(part);
        // A ledger that noticed nothing may have dropped some of its holds until then.
        if (this.#unaware.has(part)) held.push(...this.#heldBy(new Set([cell])));
      }),
      ...(isGrown ? [] : accepted),
    ];
    for (const step of this.#random.shuffle(steps)) await step();
    await this.#simulation.pass(SWEPT_MS, PASS_STEPS);
    this.#checkHolds(held);
    for (const shard of lostShards) await this.#verify(shard, shards.indexOf(shard));
    await this.#checkStays([...lostLedgers.map(([, part]) => part), ...lostShards]);
  }

  /** A shard that went back to a growth that has ended notices that from its sources (G5). */
  async #wake(shards: readonly Part<object>[]): Promise<void> {
    for (const shard of shards) await this.#send(shard, "ping", {});
    await this.#simulation.pass(WAKING_MS, PASS_STEPS);
  }

  /** The holds of leases that are not decided, whose ledgers went back. */
  #heldBy(cells: ReadonlySet<string>): Made[] {
    return this.#made.filter(
      (made) => cells.has(made.cell.id) && !made.isCommitted && this.#ownerOf(made) !== undefined,
    );
  }

  /** The cell and lease of the hold on this name. */
  #ownerOf({ shard, name, lease }: Made): object | undefined {
    const part = this.#simulation.coordinator.shard(shard);
    return read<{ lease: string }>(part, "hold", "canonical = ?", name.canonical).find(
      (hold) => hold.lease === lease,
    );
  }

  async #reconcileLedger(part: Part<object>): Promise<void> {
    const fields = { ...this.#fieldsFor(part), revokedKeys: [], removedAtMs: null };
    if (this.#random.chance(0.3)) await this.#expectUnchanged(part, { ...fields, dryRun: true });
    if (this.#random.chance(0.3)) part.crash();
    const done = await this.#send(part, "reconcile", fields);
    this.#expect(done?.ok === true && stateOf(part) === "complete", () => `${part.name} stays lost`);
    this.#expectEntry(part, "reconcile_part");
    this.#simulation.judge.see("H7");
  }

  async #acceptLoss(part: Part<object>): Promise<void> {
    const cells = [...this.#simulation.coordinator.ledgers.keys()];
    const fields = { ...this.#fieldsFor(part), cells };
    if (this.#random.chance(0.3)) await this.#expectUnchanged(part, { ...fields, dryRun: true });
    if (this.#random.chance(0.3)) part.crash();
    const done = await this.#send(part, "reconcile", fields);
    this.#expect(done?.ok === true && stateOf(part) === "reconciling", () => `${part.name} stays lost`);
    this.#expectEntry(part, "reconcile_part");
    this.#simulation.judge.see("H6");
  }

  /** What the operator did is on record (O1). */
  #expectEntry(part: Part<object>, action: AuditAction): void {
    const entries = read<{ action: AuditAction }>(part, "audit", "action = ?", action);
    this.#simulation.judge.check(
      "I33",
      entries.length > 0,
      () => `${part.name} has no entry about ${action}`,
    );
  }

  #fieldsFor(part: Part<object>): Pick<ReconcileLedger, "dryRun" | "declared" | "operator"> {
    const fields = { dryRun: false, operator };
    if (!this.#unaware.has(part)) return fields;
    this.#simulation.judge.see("an operator declared a loss");
    return { ...fields, declared: { incarnation: incarnationOf(part) } };
  }

  async #expectUnchanged(part: Part<object>, fields: object): Promise<void> {
    const content = this.#unaware.has(part) ? historyOf : contentOf;
    const before = content(part);
    const done = await this.#send(part, "reconcile", fields);
    this.#expect(done?.ok === true, () => `${part.name} refuses a dry run`);
    this.#expect(content(part) === before, () => `a dry run has changed ${part.name}`);
  }

  /** A name that was held stays held: only the cell decides its lease. */
  #checkHolds(held: readonly Made[]): void {
    for (const made of held)
      this.#expect(
        this.#ownerOf(made) !== undefined,
        () => `the hold of cell ${made.cell.id} on ${made.name.canonical} was dropped after a reconciliation`,
      );
  }

  /** Every owner verifies the names of its rows, while strangers try to get them. */
  async #verify(shard: Part<object>, index: number): Promise<void> {
    const { cells } = this.#simulation;
    const rows = this.#made.filter((made) => made.shard === index && made.isCommitted);
    const largest = Math.max(
      0,
      ...this.#made.filter((made) => made.shard === index).map(({ epoch }) => epoch),
    );
    for (const made of this.#random.shuffle(rows)) {
      const stranger = this.#random.pick(cells);
      const taken = await this.#begin(stranger, made.name, false);
      this.#expect(
        taken?.ok !== true,
        () => `${shard.name} is reconciling, and granted ${made.name.canonical} to cell ${stranger.id}`,
      );
      if (this.#random.chance(0.2)) shard.crash();
      const lease = this.#random.uuid();
      const verified = await this.#begin(made.cell, made.name, true, lease);
      if (verified?.ok !== true) continue;
      const [hold] = read<{ epoch: number }>(shard, "hold", "canonical = ?", made.name.canonical);
      this.#expect(
        hold === undefined || hold.epoch > largest,
        () => `${shard.name} has used epoch ${hold?.epoch} again: it had assigned ${largest} before its loss`,
      );
      await this.#send(this.#ledger(made.cell), "decide", {
        caller: made.cell.caller,
        lease,
        outcome: "COMMITTED",
      });
    }
    const owned = new Map(rows.map((made) => [made, this.#claimant(made)]));
    const finish = () => this.#send(shard, "finishReconciliation", { operator, removedCells: [] });
    // A shard that went back to a growth that has ended first learns that nothing more comes (G5).
    for (let tried = 0; (await finish())?.ok === false && tried < FINISHES; tried += 1)
      await this.#simulation.pass(WAKING_MS, PASS_STEPS);
    this.#expect(stateOf(shard) === "complete", () => `${shard.name} is not complete`);
    this.#expectEntry(shard, "finish_part");
    for (const [made, owner] of owned) {
      if (owner !== made.cell.id) continue;
      const stranger = this.#random.pick(cells);
      const taken = await this.#begin(stranger, made.name, false);
      this.#expect(
        taken?.ok !== true,
        () => `cell ${stranger.id} was granted ${made.name.canonical}, which cell ${owner} has verified`,
      );
    }
  }

  #claimant({ shard, name }: Made): string | undefined {
    const part = this.#simulation.coordinator.shard(shard);
    return read<{ cell: string }>(part, "claim", "canonical = ?", name.canonical)[0]?.cell;
  }

  /** No part is lost because of what its peers had seen before. Another part may notice only now. */
  async #checkStays(parts: readonly Part<object>[]): Promise<void> {
    for (const { cell } of this.#made) await this.#begin(cell, this.#newName(), false);
    for (const part of parts)
      this.#expect(stateOf(part) === "complete", () => `${part.name} is lost again after its reconciliation`);
  }

  #begin(
    cell: Cell,
    name: Name,
    isVerification: boolean,
    lease = this.#random.uuid(),
  ): Promise<Result<unknown> | undefined> {
    return this.#send(this.#ledger(cell), "begin", {
      caller: cell.caller,
      lease,
      ops: opsOf(cell, { ...this.#newName(), ...name, value: name.canonical }),
      allowMissing: false,
      payloadHash: lease,
      ...(isVerification ? { isVerification } : {}),
    });
  }

  #ledger(cell: Cell): Part<object> {
    return this.#simulation.coordinator.ledger(cell.id);
  }

  #expect(isRight: boolean, message: () => string): void {
    this.#simulation.judge.check("I25", isRight, message);
  }

  #send(part: Part<object>, method: string, fields: object): Promise<Result<unknown> | undefined> {
    return this.#simulation.runUntil(this.#simulation.operator.reply(part, method, fields));
  }
}

/** The shards that get names from a shard that has changed its placement. */
function newShardsOf(part: Part<object>): number[] {
  const [meta] = read<{ value: string }>(part, "meta", "name = 'growth_source'");
  if (meta === undefined) return [];
  const growth = JSON.parse(meta.value) as { isFenced: boolean; targets: Record<string, unknown> };
  return growth.isFenced ? Object.keys(growth.targets).map(Number) : [];
}

/** What a reconciliation would change in the rows of a part that has noticed nothing and works on. */
const historyOf = (part: Part<object>): string =>
  JSON.stringify(read(part, "meta", "name IN ('history_lost', 'history_accepted')"));

/** What a reconciliation would change. Alarms may change other rows meanwhile. */
const contentOf = (part: Part<object>): string =>
  JSON.stringify([
    historyOf(part),
    ...["lease", "claim", "hold"].map((table) => read(part, table, "true").length),
  ]);
