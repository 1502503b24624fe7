import { ChangesSince } from "../../../src/cli/parts/plan/changes-since.ts";
import { Names } from "../../../src/cli/parts/plan/names.ts";
import { newHeader, type Plan, type PlanLine } from "../../../src/cli/parts/plan/plan-file.ts";
import { PlanRun, type Done } from "../../../src/cli/parts/plan/plan-run.ts";
import { CommandError } from "../../../src/cli/framework/command-error.ts";
import type { Io } from "../../../src/cli/framework/io.ts";
import type { Client } from "../../../src/client/index.ts";
import { isLeaseholdError } from "../../../src/client/errors.ts";
import { parsePositions } from "../../../src/router/positions.ts";
import type { ClaimRow } from "../../../src/core/shard/rows.ts";
import { shipped } from "../../support/types.ts";
import { read } from "./made-leases.ts";
import { planClient, planIo } from "./plan-client.ts";
import type { Random } from "./random.ts";
import type { Simulation } from "./simulation.ts";

// In some runs, an operator makes several plans for one loss, each by what the rows say at the time. Any of
// them is carried out at any time: also an earlier one after a later one, or one of them twice. Meanwhile
// cells change their rows, and verify. A plan leaves what somebody else has changed since it was made, and
// everything else is as it says (J3).

const NAMES = 3;
/** Longer than a decision takes to reach its shard. */
const DELIVERED_MS = 1_000;
const PASS_STEPS = 20_000;
const HAS_CHANGED = "it has changed since the plan was made";
const STEPS = { make: 4, repeat: 3, verify: 2, change_row: 4 } as const;

interface Made {
  plan: Plan;
  /** Names that somebody else has changed since the plan was made. */
  foreign: Set<string>;
}

type Claims = ReadonlyMap<string, ClaimRow>;

/** What can be known of a name: its cell, or that nobody has it. */
type Owner = string | undefined;

export class Replanning {
  readonly #simulation: Simulation;
  readonly #random: Random;
  readonly #shard: number;
  readonly #lossNoticedAt: string;
  readonly #io: Io;
  readonly #client: Client;
  readonly #names: Names;
  /** Without the names that a lease holds for longer than a decision takes. */
  readonly #watched = new Set<string>();
  /** The cell that has a row with the name. */
  readonly #rows = new Map<string, Owner>();
  readonly #plans: Made[] = [];

  constructor(simulation: Simulation, shard: number, lossNoticedAt: string) {
    this.#simulation = simulation;
    this.#random = simulation.faults.stream("replanning");
    this.#shard = shard;
    this.#lossNoticedAt = lossNoticedAt;
    this.#io = planIo(simulation);
    this.#client = planClient(simulation, shard);
    this.#names = new Names(shipped, simulation.coordinator.shards.length);
    for (let number = 0; this.#watched.size < NAMES; number += 1) {
      const value = `replan-${number}`;
      if (this.#names.shardOf(bucketOf(value)) === shard) this.#watched.add(value);
    }
  }

  async run(): Promise<void> {
    for (const name of this.#watched) this.#changeRow(name);
    for (let round = this.#random.between(10, 40); round > 0 && this.#watched.size > 0; round -= 1) {
      const step = this.#random.weighted(STEPS);
      const name = this.#random.pick([...this.#watched]);
      if (step === "change_row") this.#changeRow(name);
      else if (step === "verify") await this.#verify(name);
      else if (step === "make") await this.#make();
      // In most runs, the shard no longer has the changes since older plans.
      else if (this.#plans.length > 0) await this.#carryOut(this.#random.pick(this.#plans.slice(-2)));
    }
  }

  /** A cell gets the row again that it had, so that plans may say the same. */
  #changeRow(name: string): void {
    const isGone = this.#rows.get(name) !== undefined && this.#random.chance(0.4);
    this.#rows.set(name, isGone ? undefined : this.#random.pick(this.#simulation.cells).id);
  }

  /** A cell gives up its row with the name and the claim, or takes a free name. */
  async #verify(name: string): Promise<void> {
    const claim = this.#claims().get(name);
    const cell = claim?.cell ?? this.#random.pick(this.#simulation.cells).id;
    this.#rows.set(name, claim === undefined ? cell : undefined);
    const op = claim ? { bucket: bucketOf(name), epoch: claim.epoch } : claimOf(name, cell);
    const batch = { [claim ? "destroys" : "creates"]: [op], verification: true };
    const { leases } = this.#client.forCell(cell);
    const uuid = this.#random.uuid();
    await this.#watch(undefined, async () => {
      await leases.begin(batch, { uuid });
      await leases.commit(uuid, { reason: "the rows say so" });
    });
  }

  /** Makes a plan that gives each name to the cell whose row has it. */
  async #make(): Promise<void> {
    const { checkpoint } = await this.#simulation.runUntil(this.#client.changes.page({ pageSize: 1 }));
    const claims = this.#claims();
    const header = newHeader({
      id: `plan ${this.#plans.length}`,
      part: `shard-${this.#shard}`,
      created_at: "",
      loss_noticed_at: this.#lossNoticedAt,
      through: 0,
      newest_seen: 0,
      read_through: parsePositions(checkpoint)?.get(this.#shard) ?? 0,
    });
    const lines = [...this.#watched].map((name) => lineOf(name, claims.get(name), this.#rows.get(name)));
    const made = { plan: { header, lines }, foreign: new Set<string>() };
    this.#plans.push(made);
    if (this.#random.chance(0.6)) await this.#carryOut(made);
  }

  async #carryOut(made: Made): Promise<void> {
    const { plan, foreign } = made;
    const since = new ChangesSince(
      this.#io,
      this.#client,
      this.#names,
      this.#shard,
      plan.header.read_through,
    );
    const before = this.#claims();
    const run = new PlanRun(this.#io, this.#client, this.#names, plan, "a simulated reason", since);
    const done = await this.#watch(made, () => run.run());
    const after = this.#claims();
    for (const name of this.#watched)
      if (foreign.has(name))
        this.#expect(
          before.get(name)?.epoch === after.get(name)?.epoch,
          () => `${plan.header.id} has changed ${name}, which somebody else had changed before`,
        );
    if (done !== undefined) this.#checkDone(made, done, after);
  }

  #checkDone({ plan: { header, lines }, foreign }: Made, { left }: Done, after: Claims): void {
    this.#simulation.judge.see("one of several plans was carried out");
    const reasons = new Map(left.map(({ name, because }) => [name, because]));
    for (const { name, known, do: action } of lines) {
      if (action === "leave" || !this.#watched.has(name.value)) continue;
      const reason = reasons.get(`${name.type} ${name.value}`);
      this.#expect(
        foreign.has(name.value) || reason?.endsWith(HAS_CHANGED) !== true,
        () => `${header.id} has left ${name.value}, which nobody else had changed`,
      );
      if (reason !== undefined) continue;
      const owner = after.get(name.value)?.cell;
      this.#expect(
        owner === known?.cell_id,
        () =>
          `${header.id} should ${action} ${name.value} for cell ${known?.cell_id}, but cell ${owner} has it`,
      );
    }
  }

  /** Does something, and notes for all other plans what it has changed. Undefined: it has failed. */
  async #watch<T>(actor: Made | undefined, act: () => Promise<T>): Promise<T | undefined> {
    const before = this.#claims();
    const running = act().catch((error: unknown): undefined => {
      if (!(error instanceof CommandError) && !isLeaseholdError(error)) throw error;
    });
    if (this.#random.chance(0.1)) this.#simulation.coordinator.shard(this.#shard).crash();
    const result = await this.#simulation.runUntil(running);
    await this.#simulation.pass(DELIVERED_MS, PASS_STEPS);
    const after = this.#claims();
    for (const name of this.#watched) {
      if (before.get(name)?.epoch !== after.get(name)?.epoch)
        for (const made of this.#plans) if (made !== actor) made.foreign.add(name);
      const { length } = read(this.#part, "hold", "canonical = ?", name);
      if (length > 0) this.#watched.delete(name);
    }
    return result;
  }

  /** The durable claims of the names. */
  #claims(): Claims {
    const rows = read<ClaimRow>(this.#part, "claim", "true");
    return new Map(rows.map((row) => [row.canonical, row]));
  }

  get #part() {
    return this.#simulation.coordinator.shard(this.#shard);
  }

  #expect(isRight: boolean, message: () => string): void {
    this.#simulation.judge.check("I53", isRight, message);
  }
}

const bucketOf = (value: string) => ({ type: "ROUTES" as const, value });

/** A cell has always the same row with a name, so that plans may say the same. */
function claimOf(name: string, cell: string) {
  const subject = { type: "NAMESPACE" as const, id: cell };
  return { bucket: bucketOf(name), subject, source: { type: "RAILS_TABLE_ROUTES" as const, id: cell } };
}

function lineOf(name: string, claim: ClaimRow | undefined, owner: Owner): PlanLine {
  const known = owner === undefined ? null : { ...claimOf(name, owner), cell_id: owner, epoch: 1 };
  const now = claim ? { ...claimOf(name, claim.cell), cell_id: claim.cell, epoch: claim.epoch } : null;
  const isRight = known?.cell_id === now?.cell_id;
  const proposal = isRight ? "leave" : now === null ? "claim" : known === null ? "release" : "move";
  return { name: bucketOf(name), do: proposal, proposal, certain: false, because: "", now, known };
}
