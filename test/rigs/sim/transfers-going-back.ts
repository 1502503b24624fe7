import type { Result } from "../../../src/coordinator/kernel/refusal.ts";
import type {
  BeginAnswer,
  Envelope,
  Exchange,
  ExchangeAnswer,
  Inquiry,
  LookupAnswer,
  Op,
  PlacedLease,
} from "../../../src/coordinator/kernel/messages.ts";
import type { PartStatus } from "../../../src/coordinator/capabilities/loss/messages.ts";
import type { Ledger } from "../../../src/coordinator/kernel/ledger/ledger.ts";
import type { StoredTransfer } from "../../../src/coordinator/capabilities/transfer/ledger-store.ts";
import type { RangeHoldRow } from "../../../src/coordinator/capabilities/transfer/range-holds.ts";
import type { Shard } from "../../../src/coordinator/kernel/shard/shard.ts";
import type { ClaimRow } from "../../../src/coordinator/kernel/shard/rows.ts";
import type { Transfer, TransferCall } from "../../../src/coordinator/capabilities/transfer/messages.ts";
import type { TransferSide } from "../../../src/coordinator/capabilities/transfer/range.ts";
import { copied } from "../../support/copied.ts";
import { exchangeOf, operator } from "../../support/ops.ts";
import { bucketType } from "../../support/types.ts";
import type { Cell } from "./cell.ts";
import { isApplied, throughOf, type LedgerRow } from "./judge/rows.ts";
import { bucketTypeName, type Name } from "./local.ts";
import { read } from "./made-leases.ts";
import type { Part } from "./part.ts";
import { incarnationOf, stateOf } from "./part-state.ts";
import type { Random } from "./random.ts";
import type { Simulation } from "./simulation.ts";
import { TRANSFER_CALLER } from "./transferring.ts";

// The last phase of some runs: cells move names to each other, and ledgers and shards go back in time while a
// transfer is prepared, cut, or being carried out, or after it was undone by a switch-back. Copies of old
// prepares arrive late. An operator accepts all losses at once, and decides the transfers that are rebuilt by
// what the cells work with (Y10). Which cell that is, is computed from the cuts that were made, not from what
// the parts store.

const SCOPE = "travels";
const PASS_STEPS = 20_000;
/** Longer than shards take to ask about every range hold. */
const SWEPT_MS = 600_000;
/** How long a step is tried again that something may be in the way of. */
const PAUSE_MS = 2_000;
const MOST_TRIES = 20;
const FIRST_NAMES = 6;
const MOST_MOVES = 3;

/** A transfer, and what became of it before the parts went back. */
interface Move {
  id: string;
  from: string;
  to: string;
  decided: "CUT" | "ABORTED" | undefined;
  /** Whether the destination has claimed a name of the scope since. */
  hasChanged: boolean;
}

interface LatePrepare {
  shard: number;
  message: Exchange;
}

export async function transfersGoBack(simulation: Simulation): Promise<void> {
  const stage = new Stage(simulation);
  await stage.claim();
  await stage.move();
  stage.goBack();
  await stage.compare();
  await stage.reconcile();
  await stage.decide();
  await stage.sweep();
  stage.checkOwners();
  await stage.repair();
  await stage.expectRight();
}

class Stage {
  readonly #simulation: Simulation;
  readonly #random: Random;
  readonly #ledgers: ReadonlyMap<string, Part<Ledger>>;
  readonly #shards: readonly Part<Shard>[];
  readonly #names: Name[] = [];
  /** The cell that works with each name, by canonical form. */
  readonly #owners = new Map<string, string>();
  readonly #moves: Move[] = [];
  readonly #late: LatePrepare[] = [];
  /** The states of each part to which it may go back. */
  readonly #marks = new Map<Part<object>, number[]>();
  /** The parts that went back, and those of them whose loss is not accepted yet. */
  readonly #restored = new Set<Part<object>>();
  readonly #lost = new Set<Part<object>>();
  /** The decisions that a ledger has when it goes back, and whether all shards have confirmed them. */
  readonly #stored = new Map<string, { move: Move; state: string; isConfirmed: boolean }>();
  /** The names on shards that went back whose claims must stay with the cells that work with them. */
  readonly #kept = new Set<string>();
  #holder: Cell;

  constructor(simulation: Simulation) {
    this.#simulation = simulation;
    this.#random = simulation.faults.stream("transfers going back");
    this.#ledgers = simulation.coordinator.ledgers;
    this.#shards = simulation.coordinator.shards;
    this.#holder = this.#random.pick(simulation.cells);
    simulation.endJudging();
    simulation.heard = ({ to, method, message }) => {
      const exchange = message as Exchange;
      if (method !== "exchange" || !exchange.prepares.some(({ transfer }) => transfer?.scope === SCOPE))
        return;
      this.#late.push({ shard: Number(to.split(" ")[1]), message: exchange });
    };
  }

  async claim(): Promise<void> {
    for (let name = 0; name < FIRST_NAMES; name += 1) await this.#claimNew(this.#holder);
    this.#mark();
  }

  /** A cell claims a name of the scope that nobody has. */
  async #claimNew(cell: Cell): Promise<void> {
    const name = { type: bucketType("ROUTES"), canonical: `travelling-${this.#names.length}` };
    this.#names.push(name);
    await this.#until(() => this.#lease(cell, { creates: [rowOf(name)] }));
    this.#owners.set(name.canonical, cell.id);
    await this.#pass(PAUSE_MS);
  }

  /** Transfers, of which the last one may stay open. */
  async move(): Promise<void> {
    for (let moves = this.#random.between(1, MOST_MOVES); moves > 0; moves -= 1)
      if (!(await this.#moveOnce(moves === 1))) return;
  }

  /** Returns whether another transfer may follow. */
  async #moveOnce(isLast: boolean): Promise<boolean> {
    const { cells, faults } = this.#simulation;
    const before = this.#moves.findLast(({ decided }) => decided !== "ABORTED");
    const isBack = before?.decided === "CUT" && before.to === this.#holder.id && this.#random.chance(0.6);
    const others = cells.filter(({ id }) => id !== this.#holder.id);
    const to = isBack ? this.#cell(before.from) : this.#random.pick(others);
    const move: Move = {
      id: this.#random.uuid(),
      from: this.#holder.id,
      to: to.id,
      decided: undefined,
      hasChanged: false,
    };
    const undone = isBack ? await this.#get(before) : undefined;
    const prepare = (more: object) => () =>
      this.#send(move, "prepareTransfer", "from", { from: move.from, scope: SCOPE, ...more });
    const isSwitchBack =
      undone !== undefined && (await this.#until(prepare({ switchBackOf: undone }), isBlocked))?.ok === true;
    this.#expect(
      !isSwitchBack || before?.hasChanged !== true,
      () => `transfer ${before?.id} is undone, although its destination has claimed another name`,
    );
    if (!isSwitchBack && (await this.#until(prepare({}), isBlocked))?.ok !== true) return false;
    this.#moves.push(move);
    this.#mark();
    if (isLast && this.#random.chance(0.15)) return this.#see("prepared");
    if (this.#random.chance(0.1)) {
      await this.#until(() => this.#decideBy(move, "from", "ABORTED"));
      move.decided = "ABORTED";
      this.#mark();
      await this.#pass(PAUSE_MS);
      return true;
    }
    await this.#verify(move);
    this.#mark();
    faults.stopsDecisions = this.#random.chance(0.5);
    if ((await this.#until(() => this.#decideBy(move, "from", "CUT")))?.ok !== true) {
      faults.stopsDecisions = false;
      return false;
    }
    this.#cut(move);
    this.#mark();
    // Shards learn of the cut by asking, and rewrite a claim in each transaction.
    for (let waits = this.#random.between(0, 4); waits > 0; waits -= 1) {
      await this.#pass(this.#random.exponential(this.#random.pick([20, 500, 3_000])));
      this.#mark();
    }
    if (isLast && this.#random.chance(0.4)) {
      const isBegun = this.#shards.some((shard) => rangesOf(shard).some((range) => range.cut_at_ms !== null));
      faults.stopsDecisions = false;
      return this.#see(isBegun ? "being rewritten" : "cut");
    }
    faults.stopsDecisions = false;
    for (let tries = MOST_TRIES; (await this.#get(move))?.state !== "FINISHED" && tries > 0; tries -= 1)
      await this.#pass(PAUSE_MS);
    this.#mark();
    if (isSwitchBack) this.#simulation.judge.see("Y9");
    if (isLast) this.#see(isSwitchBack ? "switched back" : "finished");
    if (this.#random.chance(isLast ? 0.6 : 0.3)) {
      move.hasChanged = this.#random.chance(0.3);
      await this.#claimNew(this.#cell(move.hasChanged ? move.to : move.from));
    }
    // Then the batch of the transfer's lease is dropped (S2).
    if (this.#random.chance(0.7)) await this.#pass(5 * PAUSE_MS);
    this.#mark();
    return true;
  }

  #see(state: string): false {
    this.#simulation.judge.see(`a transfer went back: ${state}`);
    return false;
  }

  /** From now on, the destination works with the names. */
  #cut(move: Move): void {
    move.decided = "CUT";
    this.#holder = this.#cell(move.to);
    for (const [name, owner] of this.#owners) if (owner === move.from) this.#owners.set(name, move.to);
  }

  async #verify(move: Move): Promise<void> {
    await this.#until(() => this.#send(move, "acceptTransfer", "to"));
    const known = await this.#get(move);
    for (const side of ["from", "to"] satisfies TransferSide[])
      await this.#until(() => this.#send(move, "reportTransfer", side, { side, ...known?.expected[side] }));
  }

  #mark(): void {
    for (const part of this.#parts) {
      if (this.#random.chance(0.1) && part.disk.pending === 0) part.crash();
      const marks = this.#marks.get(part) ?? [];
      marks.push(part.disk.version);
      this.#marks.set(part, marks);
    }
  }

  /** Until all losses are accepted, no part hears of another: what it forgot, it would take for aborted. */
  goBack(): void {
    const { faults } = this.#simulation;
    faults.stopsExchanges = true;
    faults.stopsInquiries = true;
    this.#simulation.heard = () => {};
    for (const part of this.#random.some(this.#parts, this.#parts.length)) {
      part.goBack(this.#random.pick(this.#marks.get(part) ?? [part.disk.version]));
      this.#restored.add(part);
      this.#lost.add(part);
    }
    for (const move of this.#moves) {
      const [stored] = this.#storedOf(move);
      const [row] = this.#rowOf(move);
      if (stored === undefined || stored.state === "PREPARED") continue;
      const isConfirmed = row === undefined || this.#isConfirmed(move, row);
      this.#stored.set(move.id, { move, state: stored.state, isConfirmed });
    }
    for (const name of this.#names) {
      const shard = this.#shards[this.#simulation.shardOf(name)];
      if (shard === undefined) continue;
      const isKept = !this.#restored.has(shard) || this.#isKept(shard, name);
      if (isKept) this.#kept.add(name.canonical);
    }
  }

  /**
   * Whether a claim on a shard that went back must stay: it is that of the cell that works with the name, and
   * the shard has no range hold of which it will learn that it was cut.
   */
  #isKept(shard: Part<Shard>, { canonical }: Name): boolean {
    const [claim] = read<ClaimRow>(shard, "claim", "canonical = ?", canonical);
    return (
      claim?.cell === this.#owners.get(canonical) &&
      !rangesOf(shard).some((range) => range.cut_at_ms !== null || this.#isCutSent(range))
    );
  }

  /**
   * Whether a ledger that has gone back sends the cut of a transfer: it has the cut, and a shard has not
   * confirmed it, or it gets the lease again from a shard that knows of the cut (Y10).
   */
  #isCutSent({ lease }: RangeHoldRow): boolean {
    const move = this.#moves.find(({ id }) => id === lease);
    if (move === undefined) return false;
    const [row] = this.#rowOf(move);
    if (this.#storedOf(move)[0]?.state === "CUT") return row !== undefined && !this.#isConfirmed(move, row);
    return this.#shards.some((shard) =>
      rangesOf(shard).some((range) => range.lease === lease && range.cut_at_ms !== null),
    );
  }

  /**
   * A ledger that has lost a cut notices that from the first answer of a shard that has begun to carry it out
   * (H3, H4).
   */
  async compare(): Promise<void> {
    const { envelope } = this.#simulation.coordinator;
    for (const move of this.#moves) {
      const { id, to, decided } = move;
      const ledger = this.#ledger(to);
      const [row] = read<StoredTransfer>(ledger, "transfer", "id = ?", id);
      if (decided !== "CUT" || row?.state === "CUT") continue;
      const hasBegun = (shard: Part<object>): boolean =>
        !rangesOf(shard).some((range) => range.lease === id && range.cut_at_ms === null);
      const knowing = this.#shards.filter((shard) => hasBegun(shard) && !this.#restored.has(shard));
      if (knowing.length > 0) await this.#expectNoAbort(move);
      for (const shard of knowing) {
        if (this.#random.chance(0.5)) continue;
        const message = exchangeOf(envelope, to);
        const answer = await this.#run(shard.instance().object.exchange(message));
        const asked = answer.ok
          ? await this.#run(ledger.instance().object.inquire(inquiryOf(envelope, answer.value)))
          : answer;
        this.#expect(
          !asked.ok && asked.refusal.reason === "HISTORY_LOST",
          () => `the ledger of cell ${to} has lost the cut ${id}, and ${shard.name} has not told it so`,
        );
        this.#simulation.judge.see("a lost cut was noticed");
      }
    }
  }

  /** An operator accepts all losses, those that the parts have noticed and the others (H4). */
  async reconcile(): Promise<void> {
    if (this.#random.chance(0.5)) this.#simulation.isolate.restart();
    for (let copies = this.#random.between(0, 3); copies > 0; copies -= 1) await this.#arriveLate();
    for (let round = 0; round < MOST_TRIES && this.#lost.size > 0; round += 1)
      for (const part of this.#random.shuffle([...this.#lost])) await this.#accept(part);
    this.#expect(this.#lost.size === 0, () => `${[...this.#lost][0]?.name} stays lost`);
    for (const { move, state, isConfirmed } of this.#stored.values()) {
      const known = await this.#get(move);
      this.#expect(
        (known?.state === "FINISHED" ? "CUT" : known?.state) === state,
        () => `transfer ${move.id} was ${state}, and is ${known?.state} after a reconciliation`,
      );
      this.#expect(
        state !== "CUT" || !isConfirmed || known?.state === "FINISHED",
        () => `transfer ${move.id} was finished, and is sent again after a reconciliation`,
      );
    }
  }

  /** A copy of an old prepare reaches a shard. */
  async #arriveLate(): Promise<void> {
    if (this.#late.length === 0) return;
    const { shard, message } = this.#random.pick(this.#late);
    const part = this.#simulation.coordinator.shard(shard);
    const held = rangesOf(part).length;
    await this.#run(part.instance().object.exchange(copied(message)));
    if (rangesOf(part).length === held) return;
    this.#simulation.judge.see("a late prepare of a transfer");
    if (!this.#restored.has(part)) return;
    // Its ledger may have gone back to a moment at which it sends the cut.
    for (const name of this.#names)
      if (this.#simulation.shardOf(name) === shard && !this.#isKept(part, name))
        this.#kept.delete(name.canonical);
  }

  async #accept(part: Part<object>): Promise<void> {
    const declared = { incarnation: incarnationOf(part) };
    const isLedger = part.name.startsWith("ledger");
    const more = isLedger ? { revokedKeys: [], removedAtMs: null } : { cells: [...this.#ledgers.keys()] };
    // It ends while it has written some of what it has found. The next call continues.
    if (this.#random.chance(0.3))
      this.#simulation.scheduler.after(this.#random.exponential(20), undefined, () => part.crash());
    const done = await this.#reply(part, "reconcile", { dryRun: false, operator, declared, ...more });
    if (done?.ok === true && stateOf(part) !== "lost") this.#lost.delete(part);
  }

  /** An operator decides what is prepared, by what the cells work with (Y10). */
  async decide(): Promise<void> {
    // A new instance of a ledger asks all shards first (Y6).
    this.#simulation.faults.stopsExchanges = false;
    for (const move of this.#moves) {
      if (this.#storedOf(move)[0]?.state !== "PREPARED") continue;
      const known = await this.#get(move);
      this.#expect(
        known?.isRebuilt === true || !this.#restored.has(this.#ledger(move.to)),
        () => `transfer ${move.id} is not marked, and its ledger may have lost its decision`,
      );
      if (known?.isRebuilt === true && this.#random.chance(0.3)) await this.#expectForOperators(move);
      const outcome = this.#isCut(move, known) ? "CUT" : "ABORTED";
      if (outcome === "CUT" && known?.isRebuilt !== true) await this.#verify(move);
      const decided = await this.#until(() => this.#decideBy(move, "operator", outcome));
      this.#expect(decided?.ok === true, () => `an operator can't decide transfer ${move.id}`);
      if (outcome === "CUT" && move.decided === undefined) this.#cut(move);
      if (known?.isRebuilt === true) this.#simulation.judge.see("Y10");
    }
  }

  /** A ledger asks all shards before it aborts a transfer (Y6), so it finds that it has lost the cut. */
  async #expectNoAbort(move: Move): Promise<void> {
    const random = this.#simulation.faults.stream("lost cuts");
    if (random.chance(0.5)) return;
    const aborted = await this.#decideBy(move, random.pick(["from", "to", "operator"] as const), "ABORTED");
    this.#expect(
      aborted?.ok !== true,
      () => `transfer ${move.id} was cut, and its ledger has forgotten that and aborted it`,
    );
  }

  async #expectForOperators(move: Move): Promise<void> {
    const party = this.#random.pick(["from", "to"] as const);
    const refused = await this.#decideBy(move, party, "ABORTED");
    this.#expect(refused?.ok !== true, () => `a cell has aborted transfer ${move.id}, which was rebuilt`);
  }

  /**
   * Whether an operator cuts a prepared transfer: if the destination works with all names that a cut would
   * move. A transfer that was never decided may go either way, if all shards still hold its scope as the
   * ledger knows it. A shard that went back may have taken a late copy of the prepare again (Y2).
   */
  #isCut({ id, from, to, decided }: Move, known: Transfer | undefined): boolean {
    const held = this.#shards.filter((shard) => rangesOf(shard).some(({ lease }) => lease === id));
    if (decided === undefined) {
      const epochs = new Map(known?.shards.map(({ shard, epoch }) => [shard, epoch]));
      const isHeld = (shard: Part<object>, index: number): boolean =>
        rangesOf(shard).some(({ lease, epoch }) => lease === id && epoch === epochs.get(index));
      return this.#shards.every(isHeld) && this.#random.chance(0.5);
    }
    const claims = held.flatMap((shard) =>
      read<ClaimRow>(shard, "claim", "cell = ? AND scope = ?", from, SCOPE),
    );
    return claims.length === 0
      ? decided === "CUT"
      : claims.every(({ canonical }) => this.#owners.get(canonical) === to);
  }

  /** All messages arrive again, and every transfer ends. */
  async sweep(): Promise<void> {
    this.#simulation.faults.stopsInquiries = false;
    await this.#pass(SWEPT_MS);
    for (const shard of this.#shards)
      this.#expect(
        rangesOf(shard).length === 0,
        () => `${shard.name} still holds ${JSON.stringify(rangesOf(shard))}`,
      );
    for (const part of this.#parts)
      this.#expect(
        stateOf(part) !== "lost" && (this.#restored.has(part) || stateOf(part) === "complete"),
        () => `${part.name} is lost again, or has never gone back`,
      );
  }

  /** The claims that no loss has changed belong to the cells that work with the names. */
  checkOwners(): void {
    for (const name of this.#names) {
      if (!this.#kept.has(name.canonical)) continue;
      const owner = this.#claimOn(name)?.cell;
      const right = this.#owners.get(name.canonical);
      this.#expect(
        owner === right,
        () => `cell ${right} works with ${name.canonical}, and cell ${owner} has it after a reconciliation`,
      );
    }
  }

  /** Verifications of the cells give up the names that others work with, and take those that are lost. */
  async repair(): Promise<void> {
    for (const name of this.#random.shuffle(this.#names)) {
      const right = this.#owners.get(name.canonical) ?? "";
      const owner = this.#claimOn(name)?.cell;
      if (owner === right) continue;
      this.#simulation.judge.see("a name of a transfer was repaired");
      const bucket = { type: bucketTypeName(name.type), value: name.canonical };
      if (owner !== undefined)
        await this.#until(() => this.#lease(this.#cell(owner), { destroys: [{ bucket }] }));
      await this.#pass(PAUSE_MS);
      await this.#until(() => this.#lease(this.#cell(right), { creates: [rowOf(name)] }));
    }
    await this.#pass(PAUSE_MS);
    for (const shard of this.#shards) {
      if (stateOf(shard) !== "reconciling") continue;
      const finish = () =>
        this.#reply<PartStatus>(shard, "finishReconciliation", { operator, removedCells: [] });
      this.#expect((await this.#until(finish))?.ok === true, () => `${shard.name} is not complete`);
    }
  }

  /** Each name has one owner, the right one, and lookups show it. */
  async expectRight(): Promise<void> {
    for (const name of this.#names) {
      const right = this.#owners.get(name.canonical);
      const shard = this.#simulation.coordinator.shard(this.#simulation.shardOf(name));
      const answer = await this.#until(() => this.#reply<LookupAnswer>(shard, "lookup", { keys: [name] }));
      const found = answer?.ok === true ? answer.value.found[0] : undefined;
      const shown = found?.kind === "record" ? found.record.cell : found?.kind;
      this.#expect(
        shown === right && this.#claimOn(name)?.cell === right,
        () => `cell ${right} works with ${name.canonical}, and a lookup shows ${shown}`,
      );
    }
  }

  get #parts(): Part<object>[] {
    return [...this.#ledgers.values(), ...this.#shards];
  }

  #cell(id: string): Cell {
    const cell = this.#simulation.cells.find((each) => each.id === id);
    if (cell === undefined) throw new Error(`there is no cell ${id}`);
    return cell;
  }

  #ledger(id: string): Part<Ledger> {
    return this.#simulation.coordinator.ledger(id);
  }

  #claimOn(name: Name): ClaimRow | undefined {
    const shard = this.#simulation.coordinator.shard(this.#simulation.shardOf(name));
    return read<ClaimRow>(shard, "claim", "canonical = ?", name.canonical)[0];
  }

  #storedOf({ id, to }: Move): StoredTransfer[] {
    return read<StoredTransfer>(this.#ledger(to), "transfer", "id = ?", id);
  }

  #isConfirmed({ to }: Move, row: LedgerRow): boolean {
    return isApplied(row, throughOf(this.#ledger(to)));
  }

  #rowOf({ id, to }: Move): LedgerRow[] {
    return read<LedgerRow>(this.#ledger(to), "lease", "lease = ?", id);
  }

  /** Begins and commits a lease that counts as part of a verification. */
  async #lease(cell: Cell, batch: object): Promise<Result<unknown> | undefined> {
    const ledger = this.#ledger(cell.id);
    const lease = this.#random.uuid();
    const ops: Op[] = cell.placed(batch);
    const call = { caller: TRANSFER_CALLER, requestId: "", lease };
    const begin = { ...call, ops, payloadHash: lease, allowMissing: true, isVerification: true };
    const begun = await this.#reply<BeginAnswer>(ledger, "begin", begin);
    if (begun?.ok !== true) return begun;
    return this.#until(() => this.#reply<PlacedLease>(ledger, "decide", { ...call, outcome: "COMMITTED" }));
  }

  async #get(move: Move): Promise<Transfer | undefined> {
    const found = await this.#until(() => this.#send(move, "getTransfer", "operator"));
    return found?.ok === true ? found.value : undefined;
  }

  #decideBy(
    move: Move,
    party: TransferCall["party"],
    outcome: Move["decided"],
  ): Promise<Result<Transfer> | undefined> {
    return this.#send(move, "decideTransfer", party, { outcome });
  }

  #send(
    { id, to }: Move,
    method: string,
    party: TransferCall["party"],
    more: object = {},
  ): Promise<Result<Transfer> | undefined> {
    const call = { caller: TRANSFER_CALLER, party, requestId: "", transfer: id };
    return this.#reply(this.#ledger(to), method, { ...call, ...more });
  }

  /** Repeats a call without an answer, and one that may be retried. */
  async #until<T>(
    call: () => Promise<Result<T> | undefined>,
    isRetried: (reply: Result<T>) => boolean = (reply) => !reply.ok && reply.refusal.code !== "NOT_FOUND",
  ): Promise<Result<T> | undefined> {
    for (let left = MOST_TRIES; ; left -= 1) {
      const reply = await call();
      if (left === 0 || (reply !== undefined && !isRetried(reply))) return reply;
      await this.#pass(PAUSE_MS);
    }
  }

  async #reply<T>(part: Part<object>, method: string, fields: object): Promise<Result<T> | undefined> {
    return (await this.#run(this.#simulation.operator.reply(part, method, fields))) as Result<T> | undefined;
  }

  #pass(ms: number): Promise<void> {
    return this.#simulation.pass(ms, PASS_STEPS);
  }

  #run<T>(work: Promise<T>): Promise<T> {
    return this.#simulation.runUntil(work);
  }

  #expect(isRight: boolean, message: () => string): void {
    this.#simulation.judge.check("I55", isRight, message);
  }
}

const rowOf = ({ type, canonical }: Name): object => ({
  bucket: { type: bucketTypeName(type), value: canonical },
  subject: { type: "NAMESPACE", id: canonical },
  source: { type: "RAILS_TABLE_PROJECTS", id: canonical },
  scope: SCOPE,
});

/** A shard asks a ledger nothing, and tells it what it has seen of it. */
const inquiryOf = (envelope: Envelope, { seen }: ExchangeAnswer): Inquiry => ({
  ...envelope,
  ...(seen === null ? {} : { seen }),
  shard: 0,
  questions: [],
});

const rangesOf = (shard: Part<object>): RangeHoldRow[] =>
  read<RangeHoldRow>(shard, "range_hold", "scope = ?", SCOPE);

/** Leases or another transfer are in the way, or a part is not ready. */
const isBlocked = (reply: Result<unknown>): boolean =>
  !reply.ok && ["ABORTED", "UNAVAILABLE", "DEADLINE_EXCEEDED"].includes(reply.refusal.code);
