import type { ReconcileOptions } from "../../src/cell/reconcile.ts";
import type { Caller, Op, Outcome } from "../../src/core/messages.ts";
import { opsOf, type Batch as WireBatch } from "../../src/http/batch.ts";
import { Api, type Batch, type Reach } from "./api.ts";
import type { Faults } from "./faults.ts";
import { LocalDatabase, LocalFailure, nameKey, type LocalRow, type Name } from "./local.ts";
import type { Random } from "./random.ts";
import { Reconciler } from "./reconciler.ts";
import type { Owner } from "./scheduler.ts";
import { Violation } from "./violation.ts";
import type { CellCrash, Weather } from "./weather.ts";

/** A lease whose end this cell knows. */
export interface Ended extends Batch {
  outcome: Outcome;
  endedAtMs: number;
}

const BEGIN_TRIES = 3;
const REMEMBERED = 20;
/** Local transactions that take long, and how long at most. */
const LONG_CHANCE = 0.1;
const LONGEST_MS = 60_000;
const RECENT_MS = 100_000;

/** What one update of a cell wants. */
export interface Plan {
  creates: LocalRow[];
  destroys: LocalRow[];
  /** The row as it will be. */
  replaces: LocalRow[];
  allowMissing: boolean;
  /** The user changes their mind after the begin. */
  isAbandoned: boolean;
}

interface Process extends Owner {
  api: Api;
  /** Names that a local transaction of this process is about. */
  locked: Set<string>;
}

/**
 * A cell: a database that survives, and a process that may die at any point of its own flow. It begins a lease inside its local transaction,
 * commits that with the outstanding lease, then commits the lease, and reconciles what it lost sight of.
 */
export class Cell {
  readonly id: string;
  readonly local: LocalDatabase;
  readonly ended: Ended[] = [];
  clockSkewMs = 0;
  keyNumber = 1;
  rows = 0;
  #process: Process;
  readonly #reach: Reach;
  readonly #faults: Faults;
  readonly #weather: Weather;
  readonly #random: Random;

  constructor(id: string, reach: Reach, faults: Faults, weather: Weather) {
    this.id = id;
    this.#reach = reach;
    this.#faults = faults;
    this.#weather = weather;
    this.#random = faults.stream(`cell ${id}`);
    this.local = new LocalDatabase(() => faults.local(id));
    this.local.onChange = (change) => reach.judge.saved(id, change);
    this.#process = this.#start();
  }

  get isUp(): boolean {
    return !this.#process.dead;
  }

  get api(): Api {
    return this.#process.api;
  }

  get caller(): Caller {
    return { role: "cell", keyId: `cell-${this.id}-key-${this.keyNumber}` };
  }

  get nowMs(): number {
    return Math.floor(this.#reach.scheduler.nowMs + this.clockSkewMs);
  }

  isLocked(name: Name): boolean {
    return this.#process.locked.has(nameKey(name));
  }

  crash(): void {
    this.#process.dead = true;
  }

  restart(): void {
    if (!this.#process.dead) return;
    this.#process = this.#start();
  }

  /** The process dies here, if the weather wants it so; what it was about to do next never happens. */
  async #mayDie(process: Process, where: CellCrash): Promise<void> {
    if (!process.dead && this.#faults.cell(this.id, where)) {
      this.crash();
      const restart = (): void => this.restart();
      this.#reach.scheduler.after(this.#random.exponential(5_000), undefined, restart);
    }
    await process.api.sleep(this.#random.exponential(this.#weather.cellMs));
  }

  /** One update, from the user's click to the answer. */
  async update(plan: Plan): Promise<void> {
    const process = this.#process;
    const names = [...plan.creates, ...plan.destroys, ...plan.replaces].map(nameKey);
    for (const name of names) process.locked.add(name);
    await this.#update(process, plan);
    for (const name of names) process.locked.delete(name);
  }

  async #update(process: Process, plan: Plan): Promise<void> {
    const batch: Batch = { lease: this.#random.uuid(), ops: this.opsOf(plan), allowMissing: plan.allowMissing };
    await this.#mayDie(process, "before_begin");
    const begun = await this.#begin(process, batch);
    await this.#mayDie(process, "after_begin");
    if (begun !== "granted" || plan.isAbandoned) {
      // Also after an unknown outcome: only this closes the lease for good (rule C7).
      if (begun !== "refused") await this.#rollBack(process, batch);
      return;
    }
    await this.#mayDie(process, "before_local_commit");
    if (this.#random.chance(LONG_CHANCE)) await process.api.sleep(Math.min(LONGEST_MS, this.#random.exponential(5_000)));
    const outstanding = { uuid: batch.lease, createdAtMs: this.nowMs };
    const saved = trySaving(() => this.local.commit({ puts: [...plan.creates, ...plan.replaces], removes: plan.destroys, outstanding }));
    if (saved === "failed") return this.#rollBack(process, batch);
    // What became of it only the database knows, and the next reconciliation reads it there.
    if (saved === "unknown") return;
    await this.#mayDie(process, "after_local_commit");
    if (!(await this.#finish(process, batch, "COMMITTED"))) return;
    await this.#mayDie(process, "after_commit");
    await this.local.remove(batch.lease).catch(onlyLocal);
    await this.#mayDie(process, "after_remove");
  }

  async #rollBack(process: Process, batch: Batch): Promise<void> {
    await this.#mayDie(process, "before_rollback");
    await this.#finish(process, batch, "ROLLED_BACK");
    await this.#mayDie(process, "after_rollback");
  }

  /** `refused` is final: no try of it is still under way as far as this cell knows. */
  async #begin(process: Process, batch: Batch): Promise<"granted" | "refused" | "unknown"> {
    let isSure = true;
    for (let tried = 1; tried <= BEGIN_TRIES; tried += 1) {
      const answer = await process.api.begin(this.id, this.caller, batch);
      if (answer.kind === "ok") {
        if (tried > 1) this.#reach.judge.see("B2");
        return answer.value.lease.state === "GRANTED" ? "granted" : "unknown";
      }
      if (answer.kind === "refused") {
        this.#seeRefusal(answer.refusal.code);
        return isSure ? "refused" : "unknown";
      }
      isSure = false;
      await process.api.sleep(this.#random.exponential(50) * tried);
    }
    return "unknown";
  }

  async #finish(process: Process, batch: Batch, outcome: Outcome): Promise<boolean> {
    const answer = await process.api.decide(this.id, this.caller, batch.lease, outcome);
    if (answer.kind === "ok") {
      this.remember({ ...batch, outcome, endedAtMs: this.#reach.scheduler.nowMs });
      if (this.#reach.judge.frozen.has(this.id)) this.#reach.judge.see("C6");
      if (this.#reach.judge.factOf(this.id, batch.lease)?.isApplied === false) this.#reach.judge.see("C3");
      return true;
    }
    if (outcome === "COMMITTED" && answer.kind === "refused" && answer.refusal.reason !== "KEY_REVOKED")
      throw new Violation(
        "I5",
        `cell ${this.id} saved lease ${batch.lease}, and its commit is refused: ${answer.refusal.code} ${answer.refusal.reason}`,
      );
    return false;
  }

  /** Those whose UUIDs may be used again: later they may be forgotten, and then belong to nobody. */
  get recent(): Ended[] {
    return this.ended.filter(({ endedAtMs }) => this.#reach.scheduler.nowMs - endedAtMs < RECENT_MS);
  }

  remember(ended: Ended): void {
    this.ended.push(ended);
    if (this.ended.length > REMEMBERED) this.ended.shift();
  }

  #seeRefusal(code: string): void {
    this.#reach.judge.see(`refused ${code}`);
  }

  opsOf({ creates, destroys, replaces }: Pick<Plan, "creates" | "destroys" | "replaces">): Op[] {
    const full = ({ type, value, subject, source }: LocalRow): object => ({ bucket: { type, value }, subject, source });
    const wire = { creates: creates.map(full), destroys: destroys.map(full), replaces: replaces.map(full) };
    const result = opsOf(wire as WireBatch, this.#reach.coordinator.shards.length, this.#reach.coordinator.limits);
    if (!result.ok) throw new Violation("B1", `a good batch is refused: ${result.refusal.detail}`);
    return result.value;
  }

  /** As a cell runs it every minute. */
  async reconcile(options: Partial<ReconcileOptions>): Promise<void> {
    const process = this.#process;
    const { judge } = this.#reach;
    await new Reconciler({ cell: this, api: process.api, judge, mayDie: (where) => this.#mayDie(process, where) }).run(options);
  }

  #start(): Process {
    const owner = { name: `cell ${this.id}`, dead: false };
    return Object.assign(owner, { api: new Api(this.#reach, owner), locked: new Set<string>() });
  }
}

function trySaving(save: () => void): "saved" | "failed" | "unknown" {
  try {
    save();
    return "saved";
  } catch (error) {
    onlyLocal(error);
    return (error as LocalFailure).isUnknown ? "unknown" : "failed";
  }
}

/** A row that stays is for the next reconciliation. */
function onlyLocal(error: unknown): void {
  if (!(error instanceof LocalFailure)) throw error;
}
