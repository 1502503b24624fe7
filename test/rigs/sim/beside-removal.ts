import type { Answer } from "../../../src/coordinator/kernel/ports.ts";
import { defaultLimits } from "../../../src/common/limits.ts";
import type { Transfer } from "../../../src/coordinator/capabilities/transfer/messages.ts";
import type { Cell } from "./cell.ts";
import { Grower } from "./growing.ts";
import type { Random } from "./random.ts";
import type { Simulation } from "./simulation.ts";
import { changeNames, endTransfers, MOVING, SCOPE, transfer, TRANSFER_CALLER } from "./transferring.ts";

/** The leases with which a cell gets names of the scope. */
const MOST_LEASES = 6;
/** How often a call without an answer is sent again. */
const MOST_TRIES = 20;

/**
 * What goes on while a cell is removed: in some runs the deployment gets more shards (G8), and in some cells
 * move names to each other (Y8).
 */
export class BesideRemoval {
  readonly #simulation: Simulation;
  readonly #cell: Cell;
  readonly #other: Cell;
  readonly #random: Random;
  readonly #grower: Grower | undefined;
  readonly #hasTransfers: boolean;

  constructor(simulation: Simulation, cell: Cell) {
    this.#simulation = simulation;
    this.#cell = cell;
    this.#random = simulation.faults.stream("beside a removal");
    this.#other = this.#random.pick(simulation.cells.filter((each) => each !== cell));
    const { ledgerBytes } = simulation.coordinator.limits;
    // A full ledger would have no room for what it remembers of transfers.
    this.#hasTransfers = this.#random.chance(0.5) && ledgerBytes === defaultLimits.ledgerBytes;
    this.#grower = this.#random.chance(0.5) ? this.#newGrower() : undefined;
  }

  #newGrower(): Grower {
    const { coordinator, judge } = this.#simulation;
    const to = coordinator.shards.length + this.#random.between(1, 2);
    coordinator.addShards(to);
    judge.watchShards();
    return new Grower(this.#simulation, {
      to: [to],
      everyMs: 0,
      rows: this.#random.pick([1, 2, 100]),
      aborts: this.#random.pick([0, 0.1]),
      hurries: 0.6,
      isLazy: this.#random.chance(0.5),
    });
  }

  /** Gives the cell and another one names that transfers can move. */
  async makeNames(): Promise<void> {
    if (!this.#hasTransfers) return;
    for (const cell of [this.#cell, this.#other])
      for (let leases = 0; leases < MOST_LEASES && !this.#hasNames(cell); leases += 1)
        await this.#run(changeNames(this.#simulation, cell, this.#random));
  }

  #hasNames({ id }: Cell): boolean {
    const claims = MOVING.map((name) => this.#simulation.judge.claimOn(name));
    return claims.some((claim) => claim?.cell === id && claim.scope === SCOPE);
  }

  /** Prepares a transfer to the cell, or from it. Undefined: the source has no names, or a name is held. */
  async prepare(side: "to" | "from"): Promise<Transfer | undefined> {
    if (!this.#hasTransfers) return undefined;
    const prepared = await this.#prepare(side);
    return prepared.kind === "ok" ? prepared.value : undefined;
  }

  #prepare(side: "to" | "from"): Promise<Answer<Transfer>> {
    const [from, to] = side === "to" ? [this.#other, this.#cell] : [this.#cell, this.#other];
    return this.#call(to.id, "prepareTransfer", this.#random.uuid(), { from: from.id, scope: SCOPE });
  }

  /** Cuts or aborts a transfer that is prepared. */
  async decide({ id, to, expected }: Transfer): Promise<void> {
    const outcome = this.#random.chance(0.6) ? "CUT" : "ABORTED";
    await this.#call(to, "acceptTransfer", id);
    for (const side of ["from", "to"] as const)
      await this.#call(to, "reportTransfer", id, { side, ...expected[side] });
    this.#simulation.judge.requests(to, id, outcome === "CUT" ? "COMMITTED" : "ROLLED_BACK");
    await this.#call(to, "decideTransfer", id, { outcome });
  }

  /** Whether no transfer from or to a removed cell can be prepared. */
  async refusesTransfers(): Promise<boolean> {
    const prepared = [await this.#prepare("to"), await this.#prepare("from")];
    return prepared.every(({ kind }) => kind !== "ok");
  }

  /** Begins something, perhaps under faults. */
  act(): void {
    const random = this.#random;
    if (this.#hasTransfers && random.chance(0.4)) {
      const third = random.pick(this.#simulation.cells.filter((each) => each !== this.#other));
      const pairs = [
        [this.#cell, this.#other],
        [this.#cell, this.#other],
        [this.#other, this.#cell],
        [this.#other, third],
      ] as const;
      const [from, to] = random.pick(pairs);
      this.#simulation.spawn(transfer(this.#simulation, from, to, random));
    }
    for (let acts = random.between(1, 3); acts > 0 && this.#grower !== undefined; acts -= 1)
      this.#simulation.spawn(this.#grower.act(random));
  }

  /** Brings the growth anywhere, often close to its cut. */
  async grow(): Promise<void> {
    for (let acts = this.#random.between(0, 8); acts > 0 && this.#grower !== undefined; acts -= 1)
      await this.#run(this.#grower.act(this.#random));
  }

  /** Goes on without faults, so that the removal can go on. */
  async goOn(): Promise<void> {
    if (this.#hasTransfers) await endTransfers(this.#simulation);
    if (this.#grower !== undefined) await this.#run(this.#grower.act(this.#random));
  }

  /** Ends the growth. */
  async finish(): Promise<void> {
    if (this.#hasTransfers) await endTransfers(this.#simulation);
    await this.#grower?.finish(this.#random);
  }

  /** A disk may be too slow for an answer in time, also without faults. The same call finds what it did. */
  async #call(to: string, method: string, id: string, fields: object = {}): Promise<Answer<Transfer>> {
    const call = { caller: TRANSFER_CALLER, party: "operator", requestId: "", transfer: id };
    for (let left = MOST_TRIES; ; left -= 1) {
      const sent = this.#simulation.operator.toLedger<Transfer>(to, method, { ...call, ...fields });
      const answer = await this.#run(sent);
      if (answer.kind !== "unknown" || left === 0) return answer;
    }
  }

  #run<T>(work: Promise<T>): Promise<T> {
    return this.#simulation.runUntil(work);
  }
}
