import { shardOf } from "../../../src/coordinator/kernel/placement.ts";
import type { Result } from "../../../src/coordinator/kernel/refusal.ts";
import type { Told } from "../../../src/coordinator/kernel/messages.ts";
import { LedgerHistory, type LedgerPoint } from "../../../src/users/client/ledger-history.ts";
import { historyHeaderOf } from "../../../src/coordinator/capabilities/loss/edge/history-header.ts";
import { bucketType } from "../../support/types.ts";
import { callAtOnce, pointsOf, type Points } from "./calls-at-once.ts";
import type { Cell } from "./cell.ts";
import type { LocalRow, Name } from "./local.ts";
import { isApplied, throughOf, type LedgerRow } from "./judge/rows.ts";
import { opsOf, read, type Made } from "./made-leases.ts";
import type { Part } from "./part.ts";
import { incarnationOf } from "./part-state.ts";
import { Reconciling } from "./reconciling.ts";
import type { Random } from "./random.ts";
import type { Simulation } from "./simulation.ts";

// The last phase of a run: the storage of some parts goes back to an earlier durable state. From then on the
// other invariants do not hold, so the judge watches only until here. What a part must notice is computed
// from the leases that this phase has made, not from the points that the parts store.

/** Longer than a ledger takes to store that its decisions are applied. */
const SETTLED_MS = 20_000;
const PASS_STEPS = 20_000;

export async function goBack(simulation: Simulation): Promise<void> {
  const stage = new Stage(simulation);
  await simulation.pass(SETTLED_MS, PASS_STEPS);
  simulation.isolate.restart();
  await stage.makeLeases(4, { restarts: stage.kind === "one knows" ? 0 : 0.2 });
  const versions = new Map(simulation.coordinator.parts.map((part) => [part, part.disk.version]));
  const early = stage.made.splice(0);
  const earlyPoints = new Map(simulation.cells.map((cell) => [cell, cell.api.history.points]));
  await stage.makeLostLeases();
  await stage.copyToD1();
  simulation.endJudging();
  const points = pointsOf(simulation.coordinator.parts);
  await stage.restore(versions);
  if (stage.isRemembered) await stage.callThroughIsolate();
  else {
    simulation.isolate.restart();
    await stage.callAtOnce(points);
  }
  await stage.visitAsCron();
  if (stage.kind === "whole") await stage.askAsCells(earlyPoints);
  await stage.loseAnswers();
  for (let round = 0; round < 3; round += 1) await stage.probe();
  if (stage.kind !== "whole") await stage.askAsCells(earlyPoints);
  await simulation.pass(1_000, PASS_STEPS);
  stage.checkNoticed();
  await stage.reconcile();
  simulation.judge.see(`went back: ${early.length > 0 ? "with" : "without"} earlier leases`);
}

/**
 * - some: some parts go back, and some others were restarted before.
 * - whole: all parts go back to one moment. Then no part knows more than another.
 * - late restarts: ledgers go back, and lose instances that sent only one message.
 * - one knows: shards go back, and only one ledger knows it. It says nothing, but the Worker has heard it.
 */
const KINDS = { some: 5, whole: 3, "late restarts": 2, "one knows": 2 } as const;

class Stage {
  readonly #simulation: Simulation;
  readonly random: Random;
  made: Made[] = [];
  /** The parts that lost something that another part knows. */
  readonly #mustNotice = new Map<Part<object>, Set<Part<object>>>();
  /** For each ledger and shard, the number of the ledger's instance at the last message about a lease. */
  readonly #lastMessages = new Map<string, number | undefined>();
  /** The instances of each shard that the isolate may have seen. */
  readonly #seenInstances = new Map<number, Set<number>>();
  /** The last keys that operators revoked before D1 had everything, by cell. Undefined: it may miss some. */
  #copiedKeys: Map<Cell, string> | undefined;
  /** The restored ledgers that lack something which D1 has. */
  readonly #behindD1 = new Set<Part<object>>();
  /** The restored parts that have lost a lease. */
  readonly #lost = new Set<Part<object>>();
  /** The parts that have been told by a part that knows. */
  readonly #told = new Set<Part<object>>();
  readonly #restored = new Set<Part<object>>();
  /** The parts that were restarted after they had made their last lease. */
  readonly #restarted = new Set<Part<object>>();
  /** The parts that went back and granted something before they were told. */
  readonly #grantedSince = new Set<Part<object>>();
  #hasLostAnswers = false;
  /** The cells that know of something that their ledger lost. */
  readonly #knowingCells = new Set<Cell>();
  readonly kind: keyof typeof KINDS;
  /** Whether the isolate of the Worker keeps what it has seen before the parts went back. */
  readonly isRemembered: boolean;
  #names = 0;

  constructor(simulation: Simulation) {
    this.#simulation = simulation;
    this.random = simulation.faults.stream("going back");
    this.kind = this.random.weighted(KINDS);
    this.isRemembered = this.random.chance(0.3) || this.kind === "one knows";
  }

  /** Each round, some parts are restarted. Then every cell begins a lease of a new name, and commits some. */
  async makeLeases(
    rounds: number,
    { restarts = 0.2, commits = 0.7, inquiries = 0, cells = this.#simulation.cells } = {},
  ): Promise<void> {
    for (let round = 0; round < rounds; round += 1) {
      for (const part of this.#simulation.coordinator.parts)
        if (this.random.chance(restarts) && part.disk.pending === 0) part.crash();
      for (const cell of cells)
        if (this.random.chance(0.8))
          await this.#make(cell, this.random.chance(commits), this.random.chance(inquiries));
    }
  }

  /** Makes leases that some parts will lose. */
  async makeLostLeases(): Promise<void> {
    const { cells } = this.#simulation;
    switch (this.kind) {
      case "one knows":
        return this.makeLeases(3, { restarts: 0, cells: [this.random.pick(cells)] });
      case "late restarts":
        await this.makeLeases(1, { restarts: 0.9, commits: 0.4, inquiries: 0.5 });
        return this.#age();
      default:
        await this.makeLeases(this.random.between(0, 6));
        return this.#age();
    }
  }

  /** In half of the runs, the cron copies everything to D1, also changes that no shard has heard of. */
  async copyToD1(): Promise<void> {
    const random = this.#simulation.faults.stream("copies to D1");
    if (random.chance(0.5)) return;
    this.#copiedKeys = new Map();
    for (const cell of this.#simulation.cells) {
      if (random.chance(0.5)) continue;
      const keyId = random.uuid();
      await this.#send(this.#ledger(cell), "revoke", { keyId, expiresAtMs: 9e15 });
      this.#copiedKeys.set(cell, keyId);
    }
    await this.#simulation.runUntil(this.#simulation.cronJob.run());
  }

  /** @param byInquiry whether the shard learns of the commit only when it asks the ledger */
  async #make(cell: Cell, isCommitted: boolean, byInquiry: boolean): Promise<void> {
    const row = this.#newRow();
    const lease = this.random.uuid();
    const { api, caller } = cell;
    const batch = { lease, ops: opsOf(cell, row), allowMissing: false };
    const begun = await this.#simulation.runUntil(api.begin(cell.id, caller, batch));
    if (begun.kind !== "ok") return;
    const shard = this.#simulation.shardOf(row);
    const incarnation = incarnationOf(this.#ledger(cell));
    this.#noteMessage(cell, shard);
    if (isCommitted) {
      const { faults } = this.#simulation;
      faults.stopsExchanges = byInquiry;
      const decided = await this.#simulation.runUntil(api.decide(cell.id, caller, lease, "COMMITTED"));
      if (byInquiry) await this.#send(this.#simulation.coordinator.shard(shard), "settle", { keys: [row] });
      faults.stopsExchanges = false;
      if (decided.kind !== "ok") return;
    }
    const made = { cell, name: row, shard, lease, isCommitted, incarnation };
    // The shard learns of the decision after the answer (C3).
    const isDelivered = isCommitted && !byInquiry && (await this.#isDelivered(made));
    // The answer to an inquiry confirms the stored point, so the shard replaces it.
    const isGrantTold = byInquiry && isCommitted;
    this.made.push({ ...made, epoch: this.#epochOf(made), isGrantTold });
    if (isDelivered) this.#noteMessage(cell, shard);
  }

  /** Waits until the shard has applied a commit. Returns false if it does not. */
  async #isDelivered({ shard, name }: Pick<Made, "shard" | "name">): Promise<boolean> {
    const part = this.#simulation.coordinator.shard(shard);
    const isHeld = (): boolean => read(part, "hold", "canonical = ?", name.canonical).length > 0;
    for (let wait = 0; isHeld() && wait < 20; wait += 1) await this.#simulation.pass(50, PASS_STEPS);
    return !isHeld();
  }

  /** A shard stores the point of the message, which includes all grants that were made before (H3). */
  #noteMessage(cell: Cell, shard: number): void {
    const ledger = this.#ledger(cell);
    const instances = this.#seenInstances.get(shard) ?? new Set();
    instances.add(incarnationOf(this.#simulation.coordinator.shard(shard)));
    this.#seenInstances.set(shard, instances);
    for (const made of this.made) if (made.cell === cell && made.shard === shard) made.isGrantTold = true;
    this.#lastMessages.set(`${cell.id} ${shard}`, ledger.current?.serial);
  }

  /** Zero if the shard has not applied the decision yet and its hold is gone. */
  #epochOf({ shard, name }: Pick<Made, "shard" | "name">): number {
    const part = this.#simulation.coordinator.shard(shard);
    const rows = ["hold", "claim"].flatMap((table) =>
      read<{ epoch: number }>(part, table, "canonical = ?", name.canonical),
    );
    return Math.max(0, ...rows.map(({ epoch }) => epoch));
  }

  reconcile(): Promise<void> {
    const newRow = (): LocalRow => this.#newRow();
    return new Reconciling(this.#simulation, this.random, this.made, this.#restored, newRow).run();
  }

  /** Time passes, so that decisions count as applied, and some parts are restarted. */
  async #age(): Promise<void> {
    if (this.random.chance(0.7)) await this.#simulation.pass(SETTLED_MS, PASS_STEPS);
    for (const part of this.#simulation.coordinator.parts)
      if (this.random.chance(0.4) && part.disk.pending === 0) {
        part.crash();
        this.#restarted.add(part);
      }
  }

  async restore(versions: ReadonlyMap<Part<object>, number>): Promise<void> {
    const { shards, ledgers, parts: all } = this.#simulation.coordinator;
    if (this.kind === "whole") {
      for (const part of all) {
        this.#restored.add(part);
        part.goBack(versions.get(part) ?? 0);
      }
      return this.#findLosses();
    }
    const some = [
      ...(this.kind === "late restarts" ? [] : shards),
      ...(this.kind === "one knows" ? [] : ledgers.values()),
    ];
    const parts = this.random.some(some, this.random.between(1, 3));
    for (const part of parts) this.#restored.add(part);
    for (const part of parts) {
      const version = versions.get(part) ?? 0;
      const isPresent = this.random.chance(0.2);
      if (!isPresent) part.goBack(this.random.chance(0.7) ? version : this.random.between(0, version));
      else part.goBack(part.disk.version);
    }
    this.#findLosses();
  }

  /** Finds what the restored parts lost, and who knows of it. */
  #findLosses(): void {
    for (const [cell, keyId] of this.#copiedKeys ?? [])
      if (read(this.#ledger(cell), "revoked_key", "key_id = ?", keyId).length === 0)
        this.#behindD1.add(this.#ledger(cell));
    for (const made of this.made) {
      const shard = this.#simulation.coordinator.shard(made.shard);
      const ledger = this.#ledger(made.cell);
      const inLedger = this.#stateOf(made);
      const isBehind = inLedger === undefined || (made.isCommitted && inLedger === "GRANTED");
      if (isBehind) this.#knowingCells.add(made.cell);
      if (isBehind && this.#copiedKeys !== undefined) this.#behindD1.add(ledger);
      if (this.#restored.has(ledger) && inLedger === undefined) this.#lost.add(ledger);
      const isGrantLost = !this.#has(made, "hold") && !this.#has(made, "claim");
      if (this.#restored.has(shard) && isGrantLost) this.#lost.add(shard);
      const onShard = this.#isOnShard(made);
      // The ledger has the row of the grant, or says that the decision does not have to be sent again.
      const isLost = !onShard && (inLedger === "GRANTED" || inLedger === "applied" || !this.#hasHold(made));
      if (this.#restored.has(shard) && !this.#restored.has(ledger) && isLost) this.#expect(shard, ledger);
      if (!this.#restored.has(ledger) || this.#restored.has(shard) || inLedger !== undefined) continue;
      // The shard has stored a point of the instance that made the lease, together with its holds.
      if (made.isGrantTold || !this.#hasIncarnation(made)) this.#expect(ledger, shard);
    }
  }

  #hasIncarnation({ cell, incarnation }: Made): boolean {
    return read(this.#ledger(cell), "incarnation", "incarnation = ?", String(incarnation)).length > 0;
  }

  /** The cron visits all ledgers, and then tells each shard what they have seen of it. */
  async visitAsCron(): Promise<void> {
    if (this.random.chance(0.7)) return;
    await this.#simulation.runUntil(this.#simulation.cronJob.run());
    for (const part of this.#mustNotice.keys())
      if (part.name.startsWith("shard")) this.#checkTold(part, "the cron");
    for (const ledger of this.#behindD1) this.#checkTold(ledger, "D1");
  }

  /**
   * The isolate has answered all begins, so it knows more than the parts that have lost them. It tells them
   * in any call, and it tells a ledger about the shards that a begin is about to ask. The points that it has
   * of a part take turns, so some calls may be needed.
   */
  async callThroughIsolate(): Promise<void> {
    const viaLedgers = this.random.chance(0.3) || this.kind === "one knows";
    for (const part of this.#lost) {
      const beginner = viaLedgers ? this.#beginnerOn(part) : undefined;
      if (viaLedgers && beginner === undefined) continue;
      let wasAsked = true;
      for (let call = 0; call < 10 && wasAsked && !isNoticed(part); call += 1) {
        if (beginner === undefined)
          await this.#send(part, part.name.startsWith("shard") ? "ping" : "status", {});
        else wasAsked = await this.#asksShard(beginner, this.#newRowOn(part));
      }
      if (wasAsked)
        this.#checkTold(part, beginner === undefined ? "the Worker" : "a begin through the Worker");
    }
  }

  /** In some runs, other calls wait for their transactions while parts notice their losses. */
  async callAtOnce(points: Points): Promise<void> {
    const random = this.#simulation.faults.stream("calls at once");
    if (random.chance(0.4))
      await callAtOnce(this.#simulation, this.#restored, points, (part) => this.#newRowOn(part), random);
  }

  /** Begins a lease. Returns whether the ledger has asked the shard: a full ledger asks nobody (S3). */
  async #asksShard(cell: Cell, name: Name): Promise<boolean> {
    const begun = await this.#begin(cell, this.random.uuid(), name);
    return begun?.ok !== false || begun.refusal.code !== "RESOURCE_EXHAUSTED";
  }

  /**
   * Returns a cell whose ledger takes over what the isolate has seen of a shard. A ledger does so only if it
   * has seen the same instance of the shard (H5), and did not forget that in a restart. The isolate must have
   * seen no other instance: a begin that carried a point of that one could be granted.
   */
  #beginnerOn(part: Part<object>): Cell | undefined {
    const shard = this.#simulation.coordinator.shards.findIndex((each) => each === part);
    if (this.#seenInstances.get(shard)?.size !== 1) return undefined;
    return this.#simulation.cells.find((cell) => {
      const ledger = this.#ledger(cell);
      const serial = this.#lastMessages.get(`${cell.id} ${shard}`);
      return !this.#restored.has(ledger) && serial !== undefined && serial === ledger.current?.serial;
    });
  }

  #newRowOn(part: Part<object>): LocalRow {
    const { shards } = this.#simulation.coordinator;
    const index = shards.findIndex((shard) => shard === part);
    if (index === -1) throw new Error(`no name is on ${part.name}`);
    for (;;) {
      const row = this.#newRow();
      // An isolate that has just started may not know that the deployment has grown.
      if (shardOf(row.type, row.canonical, shards.length) === index) return row;
    }
  }

  #checkTold(part: Part<object>, by: string): void {
    this.#told.add(part);
    this.#simulation.judge.see(`${by} told a ${part.name.split(" ")[0]}`);
    this.#simulation.judge.check(
      "I24",
      isNoticed(part),
      () => `${part.name} has gone back and ${by} has told it, but it has not noticed`,
    );
  }

  #expect(part: Part<object>, peer: Part<object>): void {
    this.#mustNotice.set(part, (this.#mustNotice.get(part) ?? new Set()).add(peer));
  }

  #stateOf({ cell, lease }: Made): string | undefined {
    const ledger = this.#ledger(cell);
    const [row] = read<LedgerRow>(ledger, "lease", "lease = ?", lease);
    if (row === undefined || row.state === "GRANTED") return row?.state;
    return isApplied(row, throughOf(ledger)) ? "applied" : "decided";
  }

  #hasHold(made: Made): boolean {
    return this.#has(made, "hold");
  }

  #isOnShard(made: Made): boolean {
    return made.isCommitted ? this.#has(made, "claim") : this.#has(made, "hold");
  }

  #has({ shard, name }: Made, table: "claim" | "hold"): boolean {
    const part = this.#simulation.coordinator.shard(shard);
    return read(part, table, "canonical = ?", name.canonical).length > 0;
  }

  /** Some begins get no answer, so a ledger cannot notice yet, and the shards must not forget. */
  async loseAnswers(): Promise<void> {
    if (this.random.chance(0.5)) return;
    const { faults, cells } = this.#simulation;
    this.#hasLostAnswers = true;
    faults.losesExchanges = true;
    for (const cell of cells) await this.#begin(cell, this.random.uuid(), this.#newRow());
    faults.losesExchanges = false;
    await this.#simulation.pass(1_000, PASS_STEPS);
  }

  /**
   * Every cell that knows more than its ledger calls it. Some of them were restarted, and of some, another
   * process that knows less called the ledger before, and stored what it has seen.
   */
  async askAsCells(earlyPoints: ReadonlyMap<Cell, LedgerPoint[]>): Promise<void> {
    for (const cell of this.#simulation.cells) {
      const { storedHistory } = cell;
      storedHistory.save(cell.api.history);
      if (this.random.chance(0.5)) {
        const other = new LedgerHistory();
        other.add(earlyPoints.get(cell) ?? []);
        await this.#askAs(cell, other);
        storedHistory.save(other);
      }
      if (this.random.chance(0.5)) {
        cell.crash();
        cell.restart();
      }
      const { history } = cell.api;
      storedHistory.load(history);
      const calls = history.points.length;
      let hasNoticed = false;
      for (let call = 0; call < calls && !hasNoticed; call += 1) {
        const reply = await this.#askAs(cell, history);
        hasNoticed = reply?.ok === false && reply.refusal.reason === "HISTORY_LOST";
      }
      this.#simulation.judge.check(
        "I24",
        hasNoticed || !this.#knowingCells.has(cell),
        () => `the ledger of cell ${cell.id} has gone back and its cell told it, but it has not noticed`,
      );
    }
    for (const what of [
      "L7",
      this.kind === "whole" ? "everything went back at once" : "cells told their ledgers",
    ])
      if (this.#knowingCells.size > 0) this.#simulation.judge.see(what);
  }

  async #askAs(cell: Cell, history: LedgerHistory): Promise<(Result<unknown> & Told) | undefined> {
    const { caller } = cell;
    const sent = history.next();
    const seen = sent === undefined ? {} : { seen: sent };
    const row = this.#newRow();
    const [method, fields] = this.random.pick([
      ["begin", { ops: opsOf(cell, row), allowMissing: false, payloadHash: row.canonical }],
      ["decide", { outcome: "ROLLED_BACK" }],
      ["listLeases", { createdAfterMs: 0, afterPosition: 0, limit: 10 }],
    ] as const);
    const message = { caller, ...seen, lease: this.random.uuid(), ...fields };
    const reply: (Result<unknown> & Told) | undefined = await this.#send(this.#ledger(cell), method, message);
    if (reply?.ok === true && reply.point !== undefined) history.answered(sent, historyHeaderOf(reply.point));
    return reply;
  }

  /** Every cell begins leases: of names that it has not asked for before, and of all names that were made. */
  async probe(): Promise<void> {
    const { cells, coordinator, judge } = this.#simulation;
    for (const cell of this.random.some(cells, cells.length)) {
      for (const name of [this.#newRow(), ...this.made.map((made) => made.name)]) {
        const shard = coordinator.shard(this.#simulation.shardOf(name));
        const ledger = this.#ledger(cell);
        const wasTold = [shard, ledger].some((part) => this.#told.has(part));
        const begun = await this.#begin(cell, this.random.uuid(), name);
        const isRefused = begun?.ok === false && begun.refusal.reason === "HISTORY_LOST";
        judge.check(
          "I24",
          !isRefused || this.#restored.size > 0,
          () => `${cell.id} was refused without a loss`,
        );
        judge.check(
          "I24",
          begun?.ok !== true || !wasTold,
          () =>
            `cell ${cell.id} was granted ${name.canonical}, although a part of it had gone back and knew it`,
        );
        if (begun?.ok === true && this.#restored.has(shard)) this.#grantedSince.add(shard);
        this.#checkTaken(name, begun);
        this.#tellByInquiry(name, begun);
        this.#tell(shard, ledger, begun);
        const told = [shard, ledger].filter((part) => this.#told.has(part));
        judge.check(
          "I24",
          begun?.ok !== true || told.length === 0,
          () => `cell ${cell.id} was granted ${name.canonical} by ${told[0]?.name}, which has gone back`,
        );
        await this.#checkLookup(shard, name);
        if (this.random.chance(0.1)) this.random.pick([shard, ledger]).crash();
      }
    }
  }

  /** A shard that has everything gives no name away because the ledger that holds it has gone back. */
  #checkTaken({ canonical }: Name, begun: Result<unknown> | undefined): void {
    if (begun?.ok !== true) return;
    const made = this.made.find(({ name }) => name.canonical === canonical);
    if (made === undefined) return;
    const shard = this.#simulation.coordinator.shard(made.shard);
    this.#simulation.judge.check(
      "I24",
      this.#restored.has(shard) || this.#mustNotice.get(this.#ledger(made.cell))?.has(shard) !== true,
      () => `${canonical} of cell ${made.cell.id}, whose ledger has gone back, was granted again`,
    );
  }

  /** A begin that was answered has made the ledger and the shard exchange what they know. */
  #tell(shard: Part<object>, ledger: Part<object>, begun: Result<unknown> | undefined): void {
    if (begun === undefined) return;
    if (!begun.ok && !["HISTORY_LOST", undefined].includes(begun.refusal.reason)) return;
    if (!begun.ok && begun.refusal.reason === undefined && begun.refusal.code !== "ALREADY_EXISTS") return;
    if (this.#mustNotice.get(shard)?.has(ledger) === true) this.#told.add(shard);
    if (this.#mustNotice.get(ledger)?.has(shard) === true) this.#told.add(ledger);
  }

  /** A begin that met a hold has made its shard ask about it. */
  #tellByInquiry({ canonical }: Name, begun: Result<unknown> | undefined): void {
    if (begun?.ok !== false || begun.refusal.code !== "ABORTED") return;
    for (const { name, cell, shard } of this.made) {
      const ledger = this.#ledger(cell);
      const knows = this.#mustNotice.get(ledger)?.has(this.#simulation.coordinator.shard(shard)) === true;
      if (name.canonical !== canonical || !knows) continue;
      this.#told.add(ledger);
      this.#simulation.judge.see("an inquiry told a ledger");
    }
  }

  async #checkLookup(shard: Part<object>, { type, canonical }: Name): Promise<void> {
    const found = await this.#send(shard, "lookup", { keys: [{ type, canonical }] });
    this.#simulation.judge.check(
      "I24",
      found?.ok !== true || !this.#told.has(shard),
      () => `${shard.name} has gone back and knows it, but answers a lookup of ${canonical}`,
    );
  }

  /** Each part that lost something and was told must have noticed. A part that lost nothing must not have. */
  checkNoticed(): void {
    const { judge, coordinator } = this.#simulation;
    for (const part of [...coordinator.shards, ...coordinator.ledgers.values()]) {
      const hasNoticed = isNoticed(part);
      judge.check(
        "I24",
        hasNoticed || !this.#told.has(part),
        () => `${part.name} has gone back and was told, but has not noticed`,
      );
      judge.check(
        "I24",
        !hasNoticed || this.#restored.has(part),
        () => `${part.name} claims to have lost something, but it has not gone back`,
      );
      if (this.#restored.has(part)) judge.see(hasNoticed ? "H4" : "a part that went back lost nothing");
    }
    if (this.#restored.size > 1) judge.see("several parts went back");
    for (const part of this.#told) judge.see(`went back: ${part.name.split(" ")[0]}`);
    this.#seeRules();
  }

  /** Notes which rules the parts needed in order to notice. `checkNoticed` has checked that they did. */
  #seeRules(): void {
    const { judge } = this.#simulation;
    for (const part of this.#told) {
      // Another part knew a point that it lost.
      if (!this.#mustNotice.has(part)) continue;
      judge.see("H2");
      // Its positions alone may have passed what others have seen of it.
      if (this.#grantedSince.has(part)) judge.see("H1");
      const peers = [...(this.#mustNotice.get(part) ?? [])];
      if (peers.length > 0 && peers.every((peer) => this.#restarted.has(peer))) judge.see("H3");
      if (this.#hasLostAnswers && part.name.startsWith("ledger")) judge.see("H5");
    }
  }

  #newRow(): LocalRow {
    this.#names += 1;
    const id = String(900_000 + this.#names);
    return {
      type: bucketType("ROUTES"),
      canonical: `back-${this.#names}`,
      value: `back-${this.#names}`,
      subject: { type: "NAMESPACE", id },
      source: { type: "RAILS_TABLE_ROUTES", id },
    };
  }

  async #begin(cell: Cell, lease: string, name: Name): Promise<Result<unknown> | undefined> {
    const ops = opsOf(cell, { ...this.#newRow(), ...name, value: name.canonical });
    return this.#send(this.#ledger(cell), "begin", {
      caller: cell.caller,
      lease,
      ops,
      allowMissing: false,
      payloadHash: lease,
    });
  }

  #ledger(cell: Cell): Part<object> {
    return this.#simulation.coordinator.ledger(cell.id);
  }

  /** Sends a message and returns the answer; undefined if there is none. */
  #send(part: Part<object>, method: string, fields: object): Promise<Result<unknown> | undefined> {
    return this.#simulation.runUntil(this.#simulation.operator.reply(part, method, fields));
  }
}

const isNoticed = (part: Part<object>): boolean => read(part, "meta", "name = 'history_lost'").length > 0;
