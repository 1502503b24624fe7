import type { CellStatus } from "../../../src/coordinator/kernel/messages.ts";
import type { RemovalProgress } from "../../../src/coordinator/capabilities/removal/messages.ts";
import type { Transfer } from "../../../src/coordinator/capabilities/transfer/messages.ts";
import { activities } from "./activity.ts";
import type { Answer } from "../../../src/coordinator/kernel/ports.ts";
import { isRefused } from "./api.ts";
import { BesideRemoval } from "./beside-removal.ts";
import type { Cell } from "./cell.ts";
import { drawNewRows } from "./draw-rows.ts";
import type { Random } from "./random.ts";
import { markRemovedCell } from "./removed-cell.ts";
import type { Simulation } from "./simulation.ts";

// A phase of some runs, near their end: an operator removes a dead cell (X2 to X5), under faults and while
// the other cells work. In some runs, the deployment gets more shards meanwhile, or cells move names. What
// the removal may release is checked with each grant, and what is left at the end.

const PASS_STEPS = 20_000;
const FIRST_ROUNDS = 6;
/** The steps that are tried under faults, and without. */
const STEPS_WITH_FAULTS = 12;
const MOST_STEPS = 200;
const PAUSE_MS = 60_000;

export async function removeCell(simulation: Simulation): Promise<void> {
  const random = simulation.faults.stream("removal");
  // Names for the cell that is removed.
  const cell = random.pick(simulation.cells);
  for (let round = 0; round < FIRST_ROUNDS; round += 1)
    await simulation.runUntil(activities.create(simulation, cell, random));
  const ledgerVersion = simulation.coordinator.ledger(cell.id).disk.version;
  const stage = new RemovalStage(simulation, cell, random);
  await stage.prepareTransfer();
  await stage.refuseEarlyStarts();
  await stage.approve();
  if (stage.random.chance(0.5)) await stage.undrainAndApprove();
  await stage.waitForTransfer();
  await stage.stepUnderFaults();
  await stage.finish();
  await markRemovedCell(simulation, { cell, random, ledgerVersion });
}

class RemovalStage {
  readonly random: Random;
  readonly #simulation: Simulation;
  readonly #cell: Cell;
  readonly #others: readonly Cell[];
  readonly #beside: BesideRemoval;
  /** A transfer to the cell that is prepared. */
  #transfer: Transfer | undefined;
  /** Whether a step was carried out. */
  #hasStarted = false;
  /** The version of the cell's state when the removal was approved. */
  #stateVersion = 0;

  constructor(simulation: Simulation, cell: Cell, random: Random) {
    this.#simulation = simulation;
    this.random = random;
    this.#cell = cell;
    this.#others = simulation.cells.filter((other) => other !== cell);
    this.#beside = new BesideRemoval(simulation, cell);
  }

  async prepareTransfer(): Promise<void> {
    await this.#beside.makeNames();
    this.#transfer = await this.#beside.prepare("to");
  }

  /** A cell that is active, has a lease, or has changed since it was compared is not removed (X2). */
  async refuseEarlyStarts(): Promise<void> {
    const compared = await this.#status();
    await this.#expectRefused(compared, "an active cell");
    const lease = this.random.uuid();
    const creates = drawNewRows(this.#simulation, this.#cell, this.random, 1);
    const { api, caller, id } = this.#cell;
    const begun =
      creates.length > 0 &&
      (await this.#run(
        api.begin(id, caller, {
          lease,
          ops: this.#cell.opsOf({ creates, destroys: [], replaces: [] }),
          allowMissing: false,
        }),
      ));
    await this.#setState("DRAINING");
    if (begun === false || begun.kind !== "ok") return;
    await this.#expectRefused(await this.#status(), "a cell with an open lease");
    const { position } = await this.#status();
    await this.#run(api.decide(id, caller, lease, "ROLLED_BACK"));
    await this.#simulation.pass(PAUSE_MS, PASS_STEPS);
    await this.#expectRefused({ ...(await this.#status()), position }, "a cell that has changed");
  }

  /** From here on, the cell's process and its database are gone. */
  async approve(): Promise<void> {
    const { judge } = this.#simulation;
    this.#cell.crash();
    this.#cell.local.rows.clear();
    for (const [name, owner] of judge.inUse) if (owner === this.#cell.id) judge.inUse.delete(name);
    judge.removing.add(this.#cell.id);
    // Shards apply the last decisions meanwhile.
    await this.#simulation.pass(PAUSE_MS, PASS_STEPS);
    await this.#run(this.#simulation.cron());
    await this.#endTransfer();
    await this.#approve();
  }

  /** A removal is not approved while a transfer to its cell is prepared, and the refusal names it (Y8). */
  async #endTransfer(): Promise<void> {
    if (this.#transfer === undefined) return;
    const { position } = await this.#status();
    const approved = await this.#toLedger<null>("approveRemoval", { position, records: 0 });
    this.#expectWaits(approved, this.#transfer);
    await this.#beside.decide(this.#transfer);
    await this.#simulation.pass(PAUSE_MS, PASS_STEPS);
  }

  /** Steps are refused while a transfer from the cell holds claims of it, and name it (Y8). */
  async waitForTransfer(): Promise<void> {
    const outgoing = await this.#beside.prepare("from");
    if (outgoing === undefined) return;
    for (let step = 0; ; step += 1) {
      const answer = await this.#run(this.#step());
      // A disk may be too slow for an answer in time, also without faults.
      if (answer.kind !== "refused" && step < MOST_STEPS) continue;
      this.#expectWaits(answer, outgoing);
      break;
    }
    await this.#beside.decide(outgoing);
    await this.#simulation.pass(PAUSE_MS, PASS_STEPS);
  }

  #expectWaits(answer: Answer<unknown>, { id }: Transfer): void {
    this.#expect(
      answer.kind === "refused" &&
        answer.refusal.reason === "CELL_HAS_LEASES" &&
        answer.refusal.detail.includes(id),
      () => `while the transfer ${id} is prepared, the removal is answered ${JSON.stringify(answer)}`,
    );
    this.#simulation.judge.see("Y8");
  }

  async #approve(): Promise<void> {
    const { stateVersion, position } = await this.#status();
    const approved = await this.#toLedger<null>("approveRemoval", { position, records: 0 });
    this.#expect(approved.kind === "ok", () => `no removal is approved: ${JSON.stringify(approved)}`);
    this.#stateVersion = stateVersion;
    this.#simulation.judge.see("X2");
  }

  /** Undraining ends the approval. A late copy of a step starts nothing that was approved later (A2). */
  async undrainAndApprove(): Promise<void> {
    const late = this.#stateVersion;
    await this.#setState("ACTIVE");
    await this.#setState("DRAINING");
    const { stateVersion } = await this.#status();
    const early = await this.#toLedger<RemovalProgress>("removalStep", { stateVersion, limit: 1 });
    this.#expect(early.kind !== "ok", () => "a step starts although the cell has changed");
    await this.#approve();
    const copy = await this.#toLedger<RemovalProgress>("removalStep", { stateVersion: late, limit: 1 });
    this.#expect(copy.kind !== "ok", () => "a late step starts another removal");
  }

  /** Steps are repeated after crashes and lost messages, by two operators at a time. */
  async stepUnderFaults(): Promise<void> {
    const { faults, coordinator } = this.#simulation;
    await this.#beside.grow();
    faults.areOff = false;
    for (let step = 0; step < STEPS_WITH_FAULTS; step += 1) {
      const steps = this.random.chance(0.3) ? [this.#step(), this.#step()] : [this.#step()];
      for (const cell of this.#others) {
        const kind = this.random.pick(["create", "rename", "steal"] as const);
        // A cell that dies never ends what it does.
        if (cell.isUp) this.#simulation.spawn(activities[kind](this.#simulation, cell, this.random));
      }
      if (this.random.chance(0.4)) this.random.pick(coordinator.parts).crash();
      this.#beside.act();
      await this.#run(Promise.all(steps));
      if (this.random.chance(0.3)) await this.#expectNoUndrain();
    }
    faults.areOff = true;
    faults.partitions = [];
    for (const cell of this.#others) cell.restart();
  }

  async finish(): Promise<void> {
    const { judge } = this.#simulation;
    let isRemoved = false;
    for (let step = 0; step < MOST_STEPS && !isRemoved; step += 1) {
      const answer = await this.#run(this.#step());
      isRemoved = answer.kind === "ok" && answer.value.state === "REMOVED";
      if (answer.kind === "ok") continue;
      // A full ledger has room again when it has forgotten leases that D1 has.
      await this.#run(this.#simulation.cronJob.run());
      await this.#beside.goOn();
      await this.#simulation.pass(PAUSE_MS, PASS_STEPS);
    }
    this.#expect(isRemoved, () => "the removal does not end");
    // Late messages may still start or cut a growth.
    await this.#simulation.pass(10 * PAUSE_MS, PASS_STEPS);
    await this.#beside.finish();
    this.#expectNothing("claims");
    this.#expectNothing("holds");
    this.#expectNothing("ranges");
    const mayMove = !(await this.#beside.refusesTransfers());
    this.#expect(!mayMove, () => "a transfer from or to a removed cell is prepared");
    const { caller } = this.#cell;
    const answer = await this.#toLedger<null>("authorize", { caller });
    this.#expect(isRefused(answer, "CELL_REMOVED"), () => "the key of a removed cell is not refused");
    judge.see("X4");
  }

  #expectNothing(what: "claims" | "holds" | "ranges"): void {
    const { id } = this.#cell;
    for (const image of this.#simulation.judge.images) {
      const rows: { cell: string; from_cell?: string }[] = [...image[what].values()];
      const left = rows.find((row) => row.cell === id || row.from_cell === id);
      this.#expect(left === undefined, () => `cell ${id} is removed, but has ${JSON.stringify(left)}`);
    }
  }

  async #expectRefused({ position }: CellStatus, what: string): Promise<void> {
    const approved = await this.#toLedger<null>("approveRemoval", { position, records: 0 });
    this.#expect(approved.kind !== "ok", () => `the removal of ${what} is approved`);
  }

  /** Once a step was carried out, the removal cannot be undone (X3). */
  async #expectNoUndrain(): Promise<void> {
    const status = await this.#toLedger<CellStatus>("status", {});
    if (status.kind !== "ok" || !this.#hasStarted) return;
    const { stateVersion } = status.value;
    const set = await this.#toLedger<null>("setState", { state: "ACTIVE", stateVersion });
    this.#expect(set.kind !== "ok", () => "a removal that has started is undone");
    this.#simulation.judge.see("X3");
  }

  async #step() {
    const limit = this.random.between(1, 3);
    const answer = await this.#simulation.operator.toLedger<RemovalProgress>(this.#cell.id, "removalStep", {
      stateVersion: this.#stateVersion,
      limit,
    });
    if (answer.kind === "ok") this.#hasStarted = true;
    if (answer.kind === "ok" && answer.value.state === "REMOVED") this.#expectNothing("claims");
    return answer;
  }

  async #setState(state: "ACTIVE" | "DRAINING"): Promise<void> {
    const { stateVersion } = await this.#status();
    await this.#toLedger<null>("setState", { state, stateVersion });
  }

  async #status(): Promise<CellStatus> {
    const status = await this.#toLedger<CellStatus>("status", {});
    if (status.kind !== "ok") throw new Error("a ledger does not answer although there are no faults");
    return status.value;
  }

  #toLedger<T>(method: string, fields: object) {
    return this.#run(this.#simulation.operator.toLedger<T>(this.#cell.id, method, fields));
  }

  #run<T>(work: Promise<T>): Promise<T> {
    return this.#simulation.runUntil(work);
  }

  #expect(isRight: boolean, message: () => string): void {
    this.#simulation.judge.check("I36", isRight, message);
  }
}
