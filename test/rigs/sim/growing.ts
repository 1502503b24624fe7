import type { Growth } from "../../../src/coordinator/capabilities/growth/messages.ts";
import { shardsOf } from "../../../src/coordinator/kernel/placement.ts";
import type { OperationKind } from "../../../src/coordinator/capabilities/operations/operations.ts";
import type { Result } from "../../../src/coordinator/kernel/refusal.ts";
import { operator } from "../../support/ops.ts";
import type { SimulatedDriver, GrowthModules } from "./projection.ts";
import type { Random } from "./random.ts";
import { overtakeByMove } from "./route-activities.ts";
import type { Simulation } from "./simulation.ts";
import type { GrowthSettings } from "./simulation-settings.ts";
import { Violation } from "./violation.ts";

/** More steps than a growth of a run takes without faults. */
const MOST_STEPS = 400;

/** Time in which alarms hand names over. */
const PAUSE_MS = 2_000;
const PAUSE_STEPS = 20_000;

/** An operator who gets more shards, as the routes and the command line do. */
export class Grower {
  readonly #simulation: Simulation;
  readonly #settings: GrowthSettings;
  /** The numbers of shards that are still to come. */
  readonly #to: number[];
  readonly #operations: Random;
  /** Whether other operators start operations in this run. */
  readonly #hasOthers: boolean;

  constructor(simulation: Simulation, settings: GrowthSettings) {
    this.#simulation = simulation;
    this.#settings = settings;
    this.#to = [...settings.to];
    this.#operations = simulation.faults.stream("operations");
    this.#hasOthers = this.#operations.chance(0.3);
  }

  /** Does one thing of the next growth. The calls of several actions overlap. */
  async act(random: Random): Promise<void> {
    const { rows, aborts, hurries, isLazy } = this.#settings;
    const call = await this.#simulation.cronJob.growthDriver();
    if (this.#hasOthers && this.#operations.chance(0.2)) await this.#operate(call);
    const growth = await call.modules.readGrowth(call.driver);
    if (!growth.ok) return;
    if (growth.value === null) return this.#start(call);
    const drawn = random.next();
    if (drawn < aborts) {
      await this.#abort(call, growth.value);
      // The next growth may begin before the new shards have deleted what this one has sent them.
      if (random.chance(0.7)) await this.#start(call);
    } else if (drawn > 0.85) await this.#cut(call, growth.value, random.chance(hurries), random);
    else if (isLazy && drawn > 0.25) await this.#stepOne(call, growth.value, random);
    else await this.#step(call, growth.value, rows);
  }

  /** Another operator starts or ends something at the same moment. */
  async #operate(call: Call): Promise<void> {
    const { judge } = this.#simulation;
    const random = this.#operations;
    const begin = (kind: OperationKind, id: string): Promise<Result<object> | undefined> =>
      this.#send(call, "beginOperation", { operation: { id, kind, about: id } });
    const restore = random.pick(["restore-1", "restore-2"]);
    const shard = random.between(0, shardsOf(call.driver.envelope.placement) - 1);
    const [begun] = await Promise.all([
      random.chance(0.8) ? begin("restore", restore) : begin("reconciliation", `shard-${shard}`),
      random.chance(0.5) ? this.#start(call) : undefined,
    ]);
    if (begun?.ok === false && begun.refusal.reason === "OPERATION_RUNNING")
      judge.see("an operation was in the way");
    if (begun?.ok === true) judge.see("A5");
    // The others end later: a restore by the next operator, and a reconciliation by the cron.
    if (random.chance(0.2)) return;
    if (begun?.ok === true) await this.#send(call, "endOperation", { operation: begun.value });
    await this.#send(call, "endRestore", { id: restore });
  }

  /** A step of one shard: the others may learn of the cut much later. */
  async #stepOne({ driver }: Call, growth: Growth, random: Random): Promise<void> {
    const shard = driver.objects.shard(random.between(0, growth.from - 1));
    // Without an answer, the step may have been carried out.
    await shard["growStep"]?.({ ...driver.envelope, growth, rows: this.#settings.rows }).catch(() => {});
  }

  /** Goes on without faults until the growth has ended. A growth that has just begun may be aborted. */
  async finish(random: Random): Promise<void> {
    const call = await this.#simulation.cronJob.growthDriver();
    const { judge } = this.#simulation;
    if (this.#hasOthers)
      for (const id of ["restore-1", "restore-2"]) await this.#run(this.#send(call, "endRestore", { id }));
    for (let steps = 0; ; steps += 1) {
      if (steps > MOST_STEPS) throw new Violation("I49", "a growth does not end without faults");
      const growth = await this.#run(call.modules.readGrowth(call.driver));
      if (!growth.ok) throw new Violation("I49", `the growth cannot be read: ${growth.refusal.detail}`);
      if (growth.value === null) break;
      if (steps === 0 && growth.value.phase === "copying" && random.chance(0.2))
        await this.#run(this.#abort(call, growth.value));
      else if (growth.value.phase === "copying" && steps % 3 === 2)
        await this.#run(this.#cut(call, growth.value, steps > MOST_STEPS / 2));
      else await this.#run(this.#step(call, growth.value, this.#settings.rows));
      await this.#simulation.pass(PAUSE_MS, PAUSE_STEPS);
      // The directory may have no room for another audit entry.
      if (steps % 20 === 19) await this.#run(this.#simulation.cron());
    }
    // The cron tells the shards of an abort that they have not heard of (G1).
    await this.#run(this.#simulation.cron());
    await this.#simulation.pass(PAUSE_MS, PAUSE_STEPS);
    const shards = shardsOf(call.driver.envelope.placement);
    this.#simulation.coordinator.hasGrown(shards);
    judge.growths.checkEnd(shards);
  }

  #run<T>(work: Promise<T>): Promise<T> {
    return this.#simulation.runUntil(work);
  }

  async #start(call: Call): Promise<void> {
    const { judge } = this.#simulation;
    const shards = shardsOf(call.driver.envelope.placement);
    const to = this.#to.find((each) => each > shards);
    if (to === undefined) return;
    const dropped = await call.modules.dropAborted(call.driver);
    if (!dropped.ok) return;
    const started = await this.#send(call, "startGrowth", { to });
    if (started?.ok !== true) return;
    judge.see("a growth has started");
    judge.see("G1");
  }

  async #step({ modules, driver }: Call, growth: Growth, rows: number): Promise<void> {
    const { judge } = this.#simulation;
    const stepped = await modules.stepGrowth(driver, growth, driver.clock.now() + 1_000, rows);
    if (stepped.ok && stepped.value === null) judge.see("a growth has ended");
  }

  async #cut(call: Call, growth: Growth, isForced: boolean, random?: Random): Promise<void> {
    const { modules, driver } = call;
    const { judge } = this.#simulation;
    const state = await modules.readProgress(driver, growth);
    const isReady = modules.isReadyToCut(state);
    if (growth.phase === "copying" && !isReady && !isForced) return;
    // Names are safe although a report is wrong: it only keeps cuts from making many names unavailable.
    const isMadeUp = isForced && (random?.chance(0.7) ?? true);
    if (isMadeUp) judge.growths.expectEarlyCut(growth.id);
    const copied = isMadeUp ? ({ state: "copied", growth: growth.id, waiting: 0 } as const) : {};
    const sources = state.shards.flatMap(({ progress }) => (progress ? { ...progress, ...copied } : []));
    if (random !== undefined) {
      this.#simulation.spawn(overtakeByMove(this.#simulation, random));
      this.#simulation.consumer?.missMove(growth);
    }
    const ordered = await this.#change(call, "cutGrowth", growth, { sources });
    if (ordered?.ok !== true) return;
    const cut = await modules.completeCut(driver, ordered.value);
    if (!cut.ok) return;
    if (!isReady) return;
    judge.see("cut when all was copied");
    judge.see("G4");
  }

  async #abort(call: Call, growth: Growth): Promise<void> {
    const { modules, driver } = call;
    const copied = await modules.mirrorGrowth(driver.database, growth);
    const aborted = copied.ok ? await this.#change(call, "abortGrowth", growth) : undefined;
    if (aborted?.ok === true) await modules.dropCopies(driver, growth);
  }

  async #change(
    call: Call,
    method: string,
    { id }: Growth,
    fields: object = {},
  ): Promise<Result<Growth> | undefined> {
    const changed = await this.#send(call, method, { id, ...fields });
    if (method === "abortGrowth" && changed?.ok === true) this.#simulation.judge.see("a growth was aborted");
    return changed;
  }

  async #send(
    { modules, driver }: Call,
    method: string,
    fields: object,
  ): Promise<Result<Growth> | undefined> {
    const seen = await modules.readSeen(driver.database);
    if (!seen.ok) return undefined;
    const message = { ...driver.envelope, operator, growthCopiedAt: seen.value.growthPosition, ...fields };
    try {
      return await driver.objects.directory()[method]?.(message);
    } catch {
      return undefined;
    }
  }
}

interface Call {
  modules: GrowthModules;
  driver: SimulatedDriver;
}
