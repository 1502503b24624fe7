import type { DeclaredTypes } from "../../../src/coordinator/capabilities/types/messages.ts";
import type { BeginRequest, BucketKey } from "../../../src/coordinator/kernel/messages.ts";
import { shardOf } from "../../../src/coordinator/kernel/placement.ts";
import { opsOf } from "../../../src/coordinator/api/batch.ts";
import { shipped } from "../../support/types.ts";
import { batchOpOf, Recorder } from "../../../src/users/conformance/history/history.ts";
import { activities, namesOf } from "./activity.ts";
import { Api, type SimulationContext } from "./api.ts";
import { MAX_CLOCK_SKEW_MS, Cell } from "./cell.ts";
import { ChangeConsumer } from "./change-consumer.ts";
import { compete } from "./compete.ts";
import { Coordinator } from "./coordinator.ts";
import { Grower } from "./growing.ts";
import { Faults } from "./faults.ts";
import { Cron } from "./projection.ts";
import { Isolate } from "./isolate.ts";
import { Judge } from "./judge/judge.ts";
import { bucketTypeName, type LocalRow, type Name } from "./local.ts";
import { Network, type Sent, type Witness } from "./network.ts";
import type { Part } from "./part.ts";
import { checkCompared, checkOpen } from "./record-check.ts";
import { Random } from "./random.ts";
import { RouteWatch } from "./judge/route-watch.ts";
import { SimulatedCache, SimulatedRouter, type RouterContext } from "./routers.ts";
import { Scheduler, type Owner } from "./scheduler.ts";
import { renew } from "./renew.ts";
import { reportStatus } from "./report-status.ts";
import { scrubStep } from "./scrubbing.ts";
import { MOVING, transferStep } from "./transferring.ts";
import { Upgrader } from "./versions.ts";
import { Violation } from "./violation.ts";
import type {
  Activity,
  GrowthSettings,
  PartFault,
  RouterSettings,
  SimulationSettings,
} from "./simulation-settings.ts";

/** A pause long enough for staleness, retention and the longest backoffs. */
const LONG_PAUSE_MS = 700_000;
const MINUTE_MS = 60_000;
/** The most events in a minute without activities. */
const SETTLING_STEPS = 5_000;
/**
 * Reconciliation judges staleness by the ledger's clock. The clock's error and the longest local transaction
 * must stay well below the stale time.
 */
const MAX_SKEW_MS = 120_000;

/** What others than cells do. */
const WITHOUT_CELL: ReadonlySet<Activity> = new Set([
  "cron",
  "freeze",
  "lookup",
  "rotate_key",
  "declare_types",
  "refresh_types",
  "look_up_declared",
  "route",
  "route_own",
  "heal_route",
  "restart_router",
  "set_router_clock",
  "cut_router",
]);

/** What a cell does all the time, with the number of the repetition. */
type Habit = (random: Random, number: number) => Promise<void>;

/** The run has had as many events as it may have. */
export class StepsAreOver extends Violation {
  constructor(steps: number) {
    super("I16", `${steps} events were not enough for the run to end`);
  }
}

/** A coordinator, its cells, and the faults that happen to them. */
export class Simulation {
  readonly scheduler: Scheduler;
  readonly faults: Faults;
  readonly judge: Judge;
  readonly coordinator: Coordinator;
  readonly cells: Cell[];
  readonly names: Name[];
  /** The names that routers look up. */
  readonly routedNames: readonly Name[];
  readonly recorder: Recorder;
  /** The leases whose begins are not recorded. */
  readonly unrecorded = new Set<string>();
  readonly router: Api;
  readonly operator: Api;
  readonly cronJob: Cron;
  /** What all clients call through. Its memory ends now and then. */
  readonly isolate: Isolate;
  /** Isolates with copies of the set of types of different ages. */
  readonly isolates: readonly Isolate[];
  /** None in most runs. */
  readonly routers: readonly SimulatedRouter[];
  readonly #routerIsolate: Isolate;
  /** Undefined in most runs. */
  consumer: ChangeConsumer | undefined;
  /** Undefined in most runs. */
  grower: Grower | undefined;
  /** Undefined in a run of one version. */
  readonly upgrader: Upgrader | undefined;
  /** Events after which the run ends. */
  mostSteps = Infinity;
  /** Called with each message that is sent. */
  heard: (call: Sent) => void = () => {};
  /** The set of types that an operator has read last. */
  lastTypes: DeclaredTypes | undefined;
  /** The number of changes of the set of types so far. */
  typeChanges = 0;
  /** Thaws of all cells. A freeze that overlaps with a thaw proves nothing. */
  readonly thaws = { started: 0, running: 0 };
  readonly #network: Network;
  readonly #seed: number;
  readonly #settings: SimulationSettings;
  /** Whether operators begin leases of frozen cells (H9). */
  readonly bringsForward: boolean;
  /** Whether cells change the spelling of names that were never claimed (B12). */
  readonly respells: boolean;
  readonly #skipped: { has: (index: number) => boolean };
  readonly #log: string[] = [];
  #failure: Error | undefined;
  #actions = 0;
  #crons = 0;
  #isActing = true;
  #isJudging = true;

  constructor(seed: number, settings: SimulationSettings, skipped: { has: (index: number) => boolean }) {
    this.#seed = seed;
    this.#settings = settings;
    this.#skipped = skipped;
    this.scheduler = new Scheduler(Random.of(seed, "ties"));
    this.faults = new Faults(seed, settings);
    // The judge needs the coordinator, which needs the network, which reports to the judge.
    const witness: Witness = {
      sent: (call) => {
        this.heard(call);
        this.#watch(() => this.judge.sent(call));
      },
      repeated: (call) => this.#recordRepeated(call),
      delivered: (call) => this.#watch(() => this.judge.delivered(call)),
      answered: (...all) => this.#watch(() => this.judge.answered(...all)),
      failed: (call) => this.#watch(() => this.judge.queues.failed(call)),
    };
    const network = new Network(this.scheduler, this.faults, witness);
    this.#network = network;
    const log = (part: string, event: string): void => {
      this.judge.see(`log ${event}`);
      if (event === "history_lost" && this.#isJudging)
        this.fail(new Violation("I24", `${part} claims to have lost something, but nothing has gone back`));
    };
    this.coordinator = new Coordinator(
      settings,
      { scheduler: this.scheduler, faults: this.faults, log, fail: (violation) => this.fail(violation) },
      network,
    );
    this.isolates = [0, 1, 2].map(
      (number) =>
        new Isolate(`isolate ${number}`, network, this.coordinator, (set) =>
          this.cronJob.record.saveTypes(set),
        ),
    );
    const [isolate] = this.isolates;
    if (isolate === undefined) throw new Error("there is always an isolate");
    this.isolate = isolate;
    this.judge = new Judge(this.coordinator);
    this.recorder = new Recorder();
    const { scheduler, coordinator, judge, recorder } = this;
    const context: SimulationContext = {
      scheduler,
      isolate: this.isolate,
      coordinator,
      judge,
      recorder,
      spawn: (work) => this.spawn(work),
      areFaultsOff: () => this.faults.areOff,
    };
    this.names = namesOf(settings.names);
    if (settings.transfersMs !== undefined) this.judge.transfers.watch(MOVING);
    this.routedNames = settings.transfersMs === undefined ? this.names : [...this.names, ...MOVING];
    this.bringsForward = settings.bringsForward === true;
    this.respells = settings.respells === true;
    this.cells = [...this.coordinator.ledgers.keys()].map(
      (cell) => new Cell(cell, context, this.faults, settings),
    );
    const rows = new Map(this.cells.map((cell) => [cell.id, cell.local.rows]));
    this.judge.rowsOf = (cell) => rows.get(cell) ?? new Map();
    this.cronJob = new Cron(settings, this.scheduler, this.faults, network, this.coordinator, (event) => {
      this.judge.see(event);
    });
    this.judge.audit.isCopied = (id) => this.cronJob.record.hasAudit(id);
    this.judge.types.copied = () => this.cronJob.record.types();
    this.judge.growths.copied = () => this.cronJob.record.growth();
    this.#routerIsolate = new Isolate("isolate of routers", network, this.coordinator, (set) =>
      this.cronJob.record.saveTypes(set),
    );
    this.routers = this.#makeRouters(settings);
    this.upgrader = settings.versions && new Upgrader(this, settings.versions);
    this.router = new Api(context, ownerNamed("router"));
    this.operator = new Api(context, ownerNamed("operator"));
  }

  #makeRouters({ routers: settings }: SimulationSettings): SimulatedRouter[] {
    if (settings === undefined) return [];
    const { scheduler, faults, coordinator, judge, routedNames: names } = this;
    judge.routes = new RouteWatch(judge, settings, names, (name) => this.#routeLater(name, settings));
    const cache = new SimulatedCache(scheduler, faults);
    const isolate = this.#routerIsolate;
    const parts = { scheduler, faults, coordinator, isolate, judge };
    const context: RouterContext = { ...parts, settings, names, cache, tails: new Map() };
    return Array.from({ length: settings.count }, (_, index) => new SimulatedRouter(index + 1, context));
  }

  /** Asks a router about a name that has changed, soon after it may no longer show what was before. */
  #routeLater(name: Name, { reports, boundMs, maxAgeMs }: RouterSettings): void {
    const random = this.faults.stream("later questions");
    if (random.chance(0.5)) return;
    this.scheduler.after((reports ? boundMs : maxAgeMs) + random.exponential(100), undefined, () => {
      if (!this.#isActing) return;
      this.spawn(
        random
          .pick(this.routers)
          .find({ name, isUpperCase: false })
          .then(() => {}),
      );
    });
  }

  get everyIsolate(): Isolate[] {
    return [...this.isolates, this.#routerIsolate];
  }

  /** The number of actions drawn so far. */
  get actions(): number {
    return this.#actions;
  }

  shardOf({ type, canonical }: BucketKey): number {
    return shardOf(type, canonical, this.isolate.shards);
  }

  /** Runs one event, then checks all invariants. Throws a `Violation`. */
  async step(untilMs?: number): Promise<boolean> {
    const isMore = await this.scheduler.step(untilMs);
    if (this.#failure === undefined) this.#watch(() => this.judge.observe());
    if (this.#failure !== undefined) throw this.#failure;
    if (this.scheduler.steps >= this.mostSteps) throw new StepsAreOver(this.mostSteps);
    return isMore;
  }

  /** Runs events for `ms` of virtual time. */
  async pass(ms: number, mostSteps: number): Promise<void> {
    const until = this.scheduler.nowMs + ms;
    const last = this.scheduler.steps + mostSteps;
    this.scheduler.after(ms, undefined, () => {});
    while (this.scheduler.nowMs < until) {
      if (!(await this.step(until))) return;
      if (this.scheduler.steps > last)
        throw new Violation("I16", `${mostSteps} events were not enough to finish all work`);
    }
  }

  /** Registers the cells without faults. */
  async start(): Promise<void> {
    await this.cronJob.load();
    for (const isolate of this.everyIsolate) isolate.restart();
    this.faults.areOff = true;
    // Before the first cell, a message with another placement fixes nothing (P2).
    const { directory, envelope } = this.coordinator;
    const early = { ...envelope, placement: `${envelope.placement}.early` };
    const confirmed = await this.runUntil(directory.instance().object.confirm(early));
    if (!confirmed.ok && confirmed.refusal.reason === "NO_CELLS") this.judge.see("P2");
    for (const { id } of this.cells) {
      const cell = {
        cell: id,
        name: `cell-${id}`,
        address: `https://cell-${id}.example`,
        locationHint: null,
      };
      const added = await this.runUntil(directory.instance().object.addCell({ ...envelope, ...cell }));
      this.judge.check("I16", added.ok, () => `cell ${id} cannot be registered: ${JSON.stringify(added)}`);
    }
    await this.#begin();
    this.faults.areOff = false;
  }

  /**
   * Some runs begin with rows and claims of which some differ, a minute before anything else, so that a
   * verification no longer treats them as recent.
   */
  async #begin(): Promise<void> {
    if (this.#settings.firstDrifts === 0) return;
    const random = this.faults.stream("first drifts");
    for (let round = 0; round < 3; round += 1)
      for (const cell of this.cells) await this.runUntil(activities.create(this, cell, random));
    for (let drift = 0; drift < this.#settings.firstDrifts; drift += 1)
      await this.runUntil(activities.plant_drift(this, random.pick(this.cells), random));
    await this.pass(MINUTE_MS, SETTLING_STEPS);
  }

  async runUntil<T>(work: Promise<T>): Promise<T> {
    const state = { isDone: false };
    const watched = work.finally(() => (state.isDone = true));
    this.spawn(watched.then(() => {}));
    // The first thing that the work waits for is scheduled by a promise, so promises run first.
    await new Promise((resume) => setImmediate(resume));
    while (!state.isDone)
      if (!(await this.step())) throw new Error("the work waits for an event that no one scheduled");
    return watched;
  }

  /** Starts work whose failure fails the run. */
  spawn(work: Promise<void>): void {
    work.catch((error: unknown) => this.fail(error));
  }

  /** Only the first failure is reported. */
  fail(error: unknown): void {
    this.#failure ??= error instanceof Error ? error : new Error(String(error));
  }

  /**
   * Runs the cron and the reconciliations in a quarter of the minutes. One may be missed, and running them
   * every minute would fill most of the run.
   */
  tick(): void {
    if (!this.#isActing) return;
    const random = this.faults.stream("minute");
    this.scheduler.after(MINUTE_MS, undefined, () => {
      if (this.#isActing && random.chance(0.25)) this.spawn(this.cron());
      if (this.faults.stream("isolate").chance(0.1)) this.isolate.restart();
      for (const cell of this.cells)
        if (this.#isActing && cell.isUp && random.chance(0.25))
          this.spawn(activities.reconcile(this, cell, random));
      this.tick();
    });
  }

  /** In some runs, cells report their status, renew leases, wait for names or move them, or parts scrub. */
  keepHabits(): void {
    const { statusMs, renewalMs, queueMs, changesMs, scrubMs, transfersMs, growth } = this.#settings;
    if (changesMs !== undefined) this.consumer = new ChangeConsumer(this);
    this.#follow(changesMs);
    if (growth !== undefined) this.grower = new Grower(this, growth);
    this.#grow(growth);
    for (const cell of this.cells) {
      this.#repeat(cell, "status", statusMs, (_, number) => reportStatus(this, cell, number));
      this.#repeat(cell, "renewals", renewalMs, (random, number) => renew(this, cell, random, number));
      if (queueMs !== undefined)
        this.#repeat(cell, "queues", queueMs / 4, (random) => compete(this, cell, random, queueMs));
      this.#repeat(cell, "scrubs", scrubMs, (random) => scrubStep(this, cell, random));
      this.#repeat(cell, "transfers", transfersMs, (random) => transferStep(this, cell, random));
    }
  }

  #follow(meanMs: number | undefined): void {
    const { consumer } = this;
    if (meanMs === undefined || consumer === undefined) return;
    const random = this.faults.stream("changes");
    this.scheduler.after(random.exponential(meanMs), undefined, () => {
      if (!this.#isActing) return;
      this.spawn(consumer.read(random));
      this.#follow(meanMs);
    });
  }

  #grow(settings: GrowthSettings | undefined): void {
    const { grower } = this;
    if (settings === undefined || grower === undefined) return;
    const random = this.faults.stream("growth");
    this.scheduler.after(random.exponential(settings.everyMs), undefined, () => {
      if (!this.#isActing) return;
      this.spawn(grower.act(random));
      this.#grow(settings);
    });
  }

  /** Repeats it after pauses of this mean, and counts. Undefined: it never happens in this run. */
  #repeat(cell: Cell, stream: string, meanMs: number | undefined, act: Habit, number = 1): void {
    if (meanMs === undefined) return;
    const random = this.faults.stream(`${stream} ${cell.id}`);
    this.scheduler.after(random.exponential(meanMs), undefined, () => {
      if (!this.#isActing) return;
      if (cell.isUp) this.spawn(act(random, number));
      this.#repeat(cell, stream, meanMs, act, number + 1);
    });
  }

  act(): void {
    if (!this.#isActing) return;
    const index = this.#actions;
    this.#actions += 1;
    const random = Random.of(this.#seed, "action", index);
    const pauseMs = random.chance(0.02)
      ? random.exponential(LONG_PAUSE_MS)
      : random.exponential(this.#settings.actionMs);
    this.scheduler.after(pauseMs, undefined, () => {
      if (this.#isActing && !this.#skipped.has(index)) this.#act(random, index);
      this.act();
    });
  }

  /** Records a duplicated begin as a second call, because one copy may be refused and the other granted. */
  #recordRepeated({ from, method, message }: Sent): void {
    if (method !== "begin") return;
    const { lease, ops, allowMissing } = message as BeginRequest;
    const cell = from.name.slice("cell ".length);
    this.recorder.invoke({
      client: `${from.name}, repeated`,
      kind: "begin",
      cell,
      lease,
      ops: ops.map(batchOpOf),
      allowMissing,
    });
  }

  stopActing(): void {
    this.#isActing = false;
  }

  get log(): readonly string[] {
    return this.#log;
  }

  #act(random: Random, index: number): void {
    const deployed = this.upgrader?.act(Random.of(this.#seed, "deployment", index));
    if (deployed !== undefined) {
      this.#note(index, deployed);
      return;
    }
    const isFault = random.chance(0.12);
    const cell = random.pick(this.cells);
    if (isFault && Object.values(this.#settings.parts).some((weight) => weight > 0)) {
      const kind = random.weighted(this.#settings.parts);
      this.#note(index, this.#breakSomething(kind, random));
      return;
    }
    if (this.faults.cell(cell.id, "any_moment")) {
      this.#note(index, `cell ${cell.id} dies`);
      cell.crash();
      this.scheduler.after(random.exponential(5_000), undefined, () => cell.restart());
      return;
    }
    const kind = random.weighted(this.#settings.activities);
    const needsCell = !WITHOUT_CELL.has(kind);
    if (needsCell && !cell.isUp) return;
    this.#note(index, `${kind} by cell ${cell.id}`);
    this.judge.see(`activity ${kind}`);
    this.spawn(activities[kind](this, cell, random));
  }

  #breakSomething(kind: PartFault, random: Random): string {
    const part = this.#drawPart(kind, random);
    if (part === undefined) return `no part for ${kind}`;
    if (kind !== "alarm_unreadable" && kind !== "lose_alarm") this.faults.count(kind);
    switch (kind) {
      case "crash":
        part.crash();
        return `${part.name} crashes`;
      case "replace":
        part.replace();
        return `${part.name} is replaced`;
      case "lose_alarm":
        part.loseAlarm();
        return `${part.name} loses its alarm`;
      case "alarm_unreadable":
        part.unreadableAlarms = random.between(1, 3);
        return `the alarm of ${part.name} cannot be read`;
      case "clock_jump": {
        const who = random.pick([part, random.pick(this.cells)]);
        return who instanceof Cell ? this.#jumpCell(who, random) : this.#jumpPart(who, random);
      }
      case "partition": {
        const parts = this.#drawLink(random);
        this.faults.partitions.push({
          parts,
          untilMs: this.scheduler.nowMs + random.exponential(random.pick([1_000, 10_000, 300_000])),
        });
        return `${parts.join(" and ")} cannot reach each other`;
      }
      case "echo":
        return this.#echo(
          random.chance(0.7) ? random.pick(this.coordinator.allShards) : part,
          random.between(1, 12),
        );
      case "slow":
        this.faults.slowUntilMs.set(part.name, this.scheduler.nowMs + random.exponential(10_000));
        return `${part.name} is slow`;
    }
  }

  /** Draws a part to which this fault can happen. */
  #drawPart(kind: PartFault, random: Random): Part<object> | undefined {
    const { parts } = this.coordinator;
    const able =
      kind === "crash" || kind === "replace"
        ? parts.filter(({ current }) => current !== undefined)
        : kind === "lose_alarm"
          ? parts.filter(({ disk }) => disk.liveAlarmMs !== null)
          : parts;
    return able.length === 0 ? undefined : random.pick(able);
  }

  /**
   * Draws the two ends of a link. Half of the time they are a ledger and a shard, the link that matters most.
   */
  #drawLink(random: Random): readonly [string, string] {
    const all = [...this.coordinator.parts, ...this.cells.map(({ id }) => ({ name: `cell ${id}` }))];
    const [ledgers, shards] = [[...this.coordinator.ledgers.values()], this.coordinator.allShards];
    const others = [...all, { name: "cron" }, { name: "router" }, { name: "operator" }];
    const [a, b] = random.chance(0.5)
      ? [random.pick(ledgers), random.pick(shards)]
      : [random.pick(all), random.pick(others)];
    return a.name === b.name ? [random.pick(ledgers).name, random.pick(shards).name] : [a.name, b.name];
  }

  #echo(part: Part<object>, count: number): string {
    this.#network.echo(part, count);
    return `the last ${count} messages to ${part.name} are delivered again`;
  }

  #jumpPart(part: { name: string; skewMs: number; jump: (ms: number) => void }, random: Random): string {
    const target = random.between(-MAX_SKEW_MS, MAX_SKEW_MS);
    if (target < part.skewMs) this.judge.see("M4");
    part.jump(target - part.skewMs);
    return `the clock of ${part.name} is ${target} ms off`;
  }

  #jumpCell(cell: Cell, random: Random): string {
    cell.clockSkewMs = random.between(-MAX_CLOCK_SKEW_MS, MAX_CLOCK_SKEW_MS);
    return `the clock of cell ${cell.id} is ${cell.clockSkewMs} ms off`;
  }

  checkInvalid(one: LocalRow, same: LocalRow): void {
    const creates = [one, same].map(({ type, value, subject, source }) => ({
      bucket: { type: bucketTypeName(type), value },
      subject,
      source,
    }));
    const result = opsOf({ creates }, shipped, this.isolate.shards, this.coordinator.limits);
    this.judge.check("I10", !result.ok, () => "a batch that contains a name twice is accepted");
    this.judge.see("B1");
  }

  /** Runs the cron, as the platform does each minute. */
  async cron(): Promise<void> {
    const startedMs = this.scheduler.nowMs;
    this.#crons += 1;
    if (this.#crons > 1) this.judge.see("crons overlap");
    // The platform may start a run twice.
    const before = new Set(this.judge.facts.keys());
    const random = this.faults.stream("cron twice");
    const isTwice = !this.faults.areOff && random.chance(0.3);
    const second = isTwice ? this.scheduler.sleep(random.exponential(200), undefined) : undefined;
    await Promise.all([this.cronJob.run(), second?.then(() => this.cronJob.run())]);
    checkCompared(this, startedMs, before);
    this.#crons -= 1;
    if (this.scheduler.nowMs - startedMs > MINUTE_MS) this.judge.see("a cron takes over a minute");
    checkOpen(this);
  }

  #note(index: number, what: string): void {
    this.#log.push(
      `${String(index).padStart(5)}  ` +
        `${(this.scheduler.nowMs - 1_750_000_000_000).toFixed(1).padStart(12)} ms  ${what}`,
    );
  }

  /** From now on, the judge is told nothing, because storage goes back in time. */
  endJudging(): void {
    this.#isJudging = false;
  }

  #watch(look: () => void): void {
    if (!this.#isJudging) return;
    try {
      look();
    } catch (error) {
      this.fail(error);
    }
  }
}

const ownerNamed = (name: string): Owner => ({ name, dead: false });
