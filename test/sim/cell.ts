import { reconcile, type ReconcileOptions, type RemoteLeases } from "../../src/cell/reconcile.ts";
import type { Answer as CellAnswer } from "../../src/cell/answer.ts";
import type { Caller, Lease, Op, Outcome } from "../../src/core/messages.ts";
import type { Answer } from "../../src/core/ports.ts";
import { errorCodes } from "../../src/core/refusal.ts";
import { opsOf, type Batch as WireBatch } from "../../src/http/batch.ts";
import { Api, type Batch, type Reach } from "./api.ts";
import type { Faults } from "./faults.ts";
import { LocalDatabase, nameKey, type LocalRow, type Name } from "./local.ts";
import type { Random } from "./random.ts";
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
  readonly local = new LocalDatabase();
  readonly ended: Ended[] = [];
  clockSkewMs = 0;
  keyNumber = 1;
  sources = 0;
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
    if (this.#faults.cell(this.id, where) && !process.dead) {
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
      if (begun !== "refused") await this.#finish(process, batch, "ROLLED_BACK");
      return;
    }
    await this.#mayDie(process, "before_local_commit");
    this.local.commit({
      puts: [...plan.creates, ...plan.replaces],
      removes: plan.destroys,
      outstanding: { uuid: batch.lease, createdAtMs: this.nowMs },
    });
    await this.#mayDie(process, "after_local_commit");
    if (!(await this.#finish(process, batch, "COMMITTED"))) return;
    await this.#mayDie(process, "after_commit");
    await this.local.remove(batch.lease);
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

  /** As a cell runs it every minute: the production code, over this cell's database and the simulated network. */
  async reconcile(options: Partial<ReconcileOptions>): Promise<void> {
    const process = this.#process;
    const local = {
      list: (page: { afterUuid: string; limit: number }) => this.local.list(page),
      has: async (uuids: readonly string[]) => {
        await this.#mayDie(process, "while_reconciling");
        return this.local.has(uuids);
      },
      remove: async (uuid: string) => {
        await this.#mayDie(process, "while_reconciling");
        await this.local.remove(uuid);
      },
    };
    let found: Violation | undefined;
    try {
      const { counters } = await reconcile(
        {
          local,
          remote: this.#remote(process),
          report: (finding) => {
            if (finding.kind !== "contradicted") return;
            // Documented: a cell that does not reconcile within the retention has to look by itself. Here it has looked.
            if (finding.coordinator === "NOT_FOUND" && this.#reach.judge.wasForgotten(this.id, finding.uuid)) {
              this.local.outstanding.delete(finding.uuid);
              return this.#reach.judge.see("forgotten before it was reconciled");
            }
            found ??= new Violation("I5", `cell ${this.id} saved lease ${finding.uuid}, and the coordinator says ${finding.coordinator}`);
          },
          nowMs: () => this.nowMs,
        },
        options,
      );
      for (const [name, count] of Object.entries(counters)) if (count > 0) this.#reach.judge.see(`reconciled ${name}`);
    } catch (error) {
      this.#reach.judge.see("reconciliation aborted");
      if (error instanceof Violation) throw error;
    }
    if (found !== undefined) throw found;
  }

  #remote({ api }: Process): RemoteLeases {
    const { id: cell } = this;
    return {
      list: async ({ pageToken, pageSize, createdAfterMs = 0 }) => {
        const answer = await api.list(cell, this.caller, { createdAfterMs, afterPosition: Number(pageToken || "0"), limit: pageSize });
        if (answer.kind !== "ok") throw new Error("the leases cannot be listed");
        const { leases, nextPosition } = answer.value;
        return { leases: leases.map(({ lease, ageMs }) => ({ uuid: lease, ageMs })), nextPageToken: nextPosition === 0 ? "" : String(nextPosition) };
      },
      get: async (uuid) => stateOf(await api.get(cell, this.caller, uuid)),
      commit: async (uuid) => stateOf(await api.decide(cell, this.caller, uuid, "COMMITTED")),
      rollback: async (uuid) => stateOf(await api.decide(cell, this.caller, uuid, "ROLLED_BACK")),
    };
  }

  #start(): Process {
    const owner = { name: `cell ${this.id}`, dead: false };
    return Object.assign(owner, { api: new Api(this.#reach, owner), locked: new Set<string>() });
  }
}

function stateOf(answer: Answer<Lease>): CellAnswer<Lease["state"]> {
  if (answer.kind === "ok") return { kind: "ok", value: answer.value.state };
  if (answer.kind === "unknown") return { kind: "unknown", error: answer.cause };
  const { code, detail, reason } = answer.refusal;
  return { kind: "refused", status: errorCodes[code].status, code, detail, conflicts: [], ...(reason === undefined ? {} : { reason }) };
}
