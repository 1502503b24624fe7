import type { Snapshot } from "../../../src/coordinator/kernel/directory/messages.ts";
import type { RemovalEnd, RemovalProgress } from "../../../src/coordinator/capabilities/removal/messages.ts";
import type { PartStatus } from "../../../src/coordinator/capabilities/loss/messages.ts";
import { operator } from "../../support/ops.ts";
import { isRefused } from "./api.ts";
import type { Cell } from "./cell.ts";
import { read } from "./made-leases.ts";
import type { Part } from "./part.ts";
import type { Random } from "./random.ts";
import type { Simulation } from "./simulation.ts";

// The last phase of a run that has removed a cell: the directory learns it (X5), by the call that ended the
// removal or by the cron, with crashes in between. Then the directory or the cell's ledger goes back in time.

const PASS_STEPS = 20_000;
const MINUTE_MS = 60_000;
/** The runs of the cron in which a directory without faults learns of a removal, and D1 gets all entries. */
const CRON_RUNS = 3;
/** The times that the directory is told although parts crash. */
const MOST_TOLD = 3;

export interface RemovedCellParts {
  cell: Cell;
  random: Random;
  /** The state of the cell's ledger before the removal. */
  ledgerVersion: number;
}

export async function markRemovedCell(simulation: Simulation, parts: RemovedCellParts): Promise<void> {
  const stage = new RemovedCellStage(simulation, parts);
  const before = simulation.coordinator.directory.disk.version;
  await stage.tellUnderFaults();
  await stage.learnByCron();
  await stage.expectFinal();
  await stage.expectClosed();
  simulation.endJudging();
  const kind = parts.random.weighted({ directory: 1, ledger: 1 });
  if (kind === "directory") await stage.directoryGoesBack(before);
  else await stage.ledgerGoesBack();
  await stage.expectFinal();
}

class RemovedCellStage {
  readonly #simulation: Simulation;
  readonly #cell: Cell;
  readonly #random: Random;
  readonly #ledgerVersion: number;
  readonly #directory: Part<object>;
  readonly #ledger: Part<object>;

  constructor(simulation: Simulation, { cell, random, ledgerVersion }: RemovedCellParts) {
    this.#simulation = simulation;
    this.#cell = cell;
    this.#random = random;
    this.#ledgerVersion = ledgerVersion;
    this.#directory = simulation.coordinator.directory;
    this.#ledger = simulation.coordinator.ledger(cell.id);
  }

  /** Operators repeat the last step, and pass on what the ledger says, if they live long enough. */
  async tellUnderFaults(): Promise<void> {
    const { faults, operator: api } = this.#simulation;
    faults.areOff = false;
    const tries = this.#random.between(0, MOST_TOLD);
    for (let told = 0; told < tries; told += 1) {
      const step = await this.#run(
        api.toLedger<RemovalProgress>(this.#cell.id, "removalStep", { stateVersion: 0, limit: 1 }),
      );
      if (step.kind !== "ok" || step.value.end === null) continue;
      const { atMs, operator: by } = step.value.end;
      const message = { cell: this.#cell.id, removedAtMs: atMs, operator: by };
      const tell = (): Promise<unknown> => api.toDirectory("removeCell", message);
      const telling = Promise.all(this.#random.chance(0.5) ? [tell(), tell()] : [tell()]);
      if (this.#random.chance(0.5)) this.#random.pick([this.#directory, this.#ledger]).crash();
      await this.#run(telling);
    }
    faults.areOff = true;
    faults.partitions = [];
  }

  /** Whatever came of the calls, the directory knows it after a run of the cron. */
  async learnByCron(): Promise<void> {
    await this.#simulation.pass(10 * MINUTE_MS, PASS_STEPS);
    if (this.removedAtMs === null) this.#simulation.judge.see("the cron marks a removed cell");
    await this.#runCron(1);
    const end = this.#end();
    this.#expect(
      this.removedAtMs === end.atMs,
      () => `its ledger was removed at ${end.atMs}, and the directory says ${this.removedAtMs}`,
    );
    this.#simulation.judge.see("X5");
  }

  /** Nothing of the cell can be changed, and its id is never used again. */
  async expectFinal(): Promise<void> {
    const { id } = this.#cell;
    const snapshot = await this.#ask<Snapshot>("snapshot", {});
    const cells = snapshot.kind === "ok" ? snapshot.value.cells : [];
    const cell = cells.find((each) => each.cell === id);
    this.#expect(cell?.removedAtMs === this.#end().atMs, () => "the directory does not answer it as removed");
    const key = { keyId: "late", role: "cell", cell: id, note: null, createdAtMs: 0, expiresAtMs: 1e15 };
    const { name = "", address = "", locationHint = null, updatedAtMs = 0 } = cell ?? {};
    const calls = [
      ["recordKey", { key: { ...key, revokedAtMs: null } }],
      ["changeCell", { cell: id, name: "other", updatedAtMs }],
      ["addCell", { cell: id, name, address, locationHint }],
      ["takeSlot", { cell: id, uuid: "run" }],
    ] as const;
    for (const [method, message] of calls) {
      const answer = await this.#ask(method, message);
      this.#expect(isRefused(answer, "CELL_REMOVED"), () => `the directory accepts ${method}`);
    }
    const { caller } = this.#cell;
    const answer = await this.#run(this.#simulation.operator.toLedger(id, "authorize", { caller }));
    this.#expect(isRefused(answer, "CELL_REMOVED"), () => "its ledger does not refuse its key");
  }

  /** The cron visits its ledger until D1 has all of its entries. */
  async expectClosed(): Promise<void> {
    await this.#runCron(CRON_RUNS);
    const { record } = this.#simulation.cronJob;
    const isClosed = record.cells().find(({ cell }) => cell === this.#cell.id)?.closedAtMs !== null;
    this.#expect(isClosed, () => "the cron goes on visiting its ledger");
    for (const part of [this.#ledger, this.#directory]) {
      const left = read<{ id: string }>(part, "audit", "true");
      this.#expect(left.length === 0, () => `${part.name} has entries that D1 never gets`);
    }
    const entries = record.auditOf("remove_cell").filter(({ part }) => part === "directory").length;
    this.#expect(entries === 1, () => `the directory has ${entries} entries about it`);
  }

  /** It has forgotten the removal, and the ledger or D1 tells it again. */
  async directoryGoesBack(version: number): Promise<void> {
    this.#directory.goBack(version);
    const isForgotten = this.removedAtMs === null;
    const { error } = await this.#run(this.#simulation.cronJob.run());
    const status = await this.#ask<PartStatus>("part", {});
    if (status.kind === "ok" && status.value.state === "lost") {
      const { record } = this.#simulation.cronJob;
      await this.#ask("reconcile", {
        cells: record.cells(),
        keys: record.keys(),
        types: record.types(),
        isPlacementConfirmed: true,
        isLast: true,
        dryRun: false,
      });
      if (isForgotten) this.#simulation.judge.see("D1 marks a removed cell");
    } else if (error !== null) await this.#runCron(1);
    // The visits of removed cells take turns.
    await this.#runCron(CRON_RUNS);
  }

  /** It went back to before the removal, so it would grant leases to the cell's keys. */
  async ledgerGoesBack(): Promise<void> {
    const end = this.#end();
    this.#ledger.goBack(this.#ledgerVersion);
    await this.#run(this.#simulation.cronJob.run());
    const part = await this.#run(this.#simulation.operator.toLedger<PartStatus>(this.#cell.id, "part", {}));
    this.#expect(
      part.kind === "ok" && part.value.state === "lost",
      () => "its ledger has lost the removal, and has not noticed it when it was told",
    );
    const fields = { dryRun: false, operator, revokedKeys: [], removedAtMs: end.atMs };
    const done = await this.#run(this.#simulation.operator.toLedger(this.#cell.id, "reconcile", fields));
    this.#expect(done.kind === "ok", () => `its ledger cannot be reconciled: ${JSON.stringify(done)}`);
    this.#simulation.judge.see("a ledger has lost a removal");
  }

  /** As the directory has it durably. */
  get removedAtMs(): number | null {
    const [row] = read<{ removed_at_ms: number | null }>(this.#directory, "cell", "cell = ?", this.#cell.id);
    return row?.removed_at_ms ?? null;
  }

  /** As the ledger has it durably. */
  #end(): RemovalEnd {
    const [row] = read<{ value: string }>(this.#ledger, "meta", "name = ?", "removal");
    const { end } = JSON.parse(row?.value ?? "{}") as { end?: RemovalEnd | null };
    this.#expect(end !== undefined && end !== null, () => "its ledger does not say that it is removed");
    return end as RemovalEnd;
  }

  async #runCron(times: number): Promise<void> {
    for (let run = 0; run < times; run += 1) {
      const { error } = await this.#run(this.#simulation.cronJob.run());
      this.#expect(error === null, () => `the cron fails: ${error}`);
    }
  }

  #ask<T>(method: string, message: object) {
    return this.#run(this.#simulation.operator.toDirectory<T>(method, message));
  }

  #run<T>(work: Promise<T>): Promise<T> {
    return this.#simulation.runUntil(work);
  }

  #expect(isRight: boolean, message: () => string): void {
    this.#simulation.judge.check("I37", isRight, () => `cell ${this.#cell.id}: ${message()}`);
  }
}
