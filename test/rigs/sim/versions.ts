import type { Random } from "./random.ts";
import type { Simulation } from "./simulation.ts";
import type { VersionSettings } from "./simulation-settings.ts";

/** The newest formats that the code of the two versions speaks. */
export const OLDER = 1;
export const NEWER = 2;

/** A part, an isolate of the Worker or the cron. */
interface Deployed {
  readonly name: string;
  readonly speaks: number | undefined;
  deploy(speaks: number, isSudden: boolean): void;
}

/** Deploys code of two versions to one part after the other, and finishes the upgrade (M9). */
export class Upgrader {
  readonly #simulation: Simulation;
  readonly #settings: VersionSettings;
  #isFinished = false;

  constructor(simulation: Simulation, settings: VersionSettings) {
    this.#simulation = simulation;
    this.#settings = settings;
  }

  /** May upgrade something or roll it back, or finish the upgrade. Returns what it does. */
  act(random: Random): string | undefined {
    const { deployments, finishes, hurries } = this.#settings;
    if (!random.chance(deployments)) return undefined;
    const older = this.#all.filter(({ speaks }) => speaks === OLDER);
    const isDue = finishes && !this.#isFinished && (older.length === 0 || random.chance(hurries));
    if (isDue && random.chance(0.5)) {
      this.#simulation.spawn(this.#finish());
      return "the upgrade is finished";
    }
    if (older.length > 0 && random.chance(0.15)) {
      for (const each of older) this.#deploy(each, NEWER, random.chance(0.5));
      return "everything is upgraded";
    }
    const each = random.pick(random.chance(0.7) && older.length > 0 ? older : this.#all);
    const speaks = each.speaks === OLDER ? NEWER : OLDER;
    this.#deploy(each, speaks, random.chance(0.5));
    return `${each.name} gets code of version ${speaks}`;
  }

  /** At the end of a run, everything has the newer code, as have parts that are made from now on. */
  upgradeAll(): void {
    this.#simulation.coordinator.speaks = NEWER;
    for (const each of this.#all) if (each.speaks === OLDER) this.#deploy(each, NEWER, true);
  }

  get #all(): Deployed[] {
    const { coordinator, everyIsolate, cronJob } = this.#simulation;
    return [...coordinator.parts, ...everyIsolate, cronJob];
  }

  #deploy(each: Deployed, speaks: number, isSudden: boolean): void {
    const { judge } = this.#simulation;
    judge.see(speaks === NEWER ? "upgraded" : "rolled back");
    if (speaks === OLDER && this.#isFinished) judge.see("rolled back after the upgrade was finished");
    each.deploy(speaks, isSudden);
  }

  /** The Worker can put the format in force that its own code speaks. */
  async #finish(): Promise<void> {
    const { operator, isolate, judge } = this.#simulation;
    const raiseTo = isolate.speaks;
    const answer = await operator.toDirectory<null>("raiseFormat", { raiseTo });
    if (raiseTo !== NEWER || answer.kind !== "ok") return;
    this.#isFinished = true;
    judge.see("an upgrade was finished");
    if (this.#all.some(({ speaks }) => speaks === OLDER)) judge.see("an upgrade was finished too early");
  }
}
