import { setTimeout } from "node:timers/promises";
import { closedLoop, type Loaded } from "../client/closed-loop.ts";
import { Cycles, Lookups } from "../client/cycles.ts";
import { Names } from "../client/names.ts";
import type { Deployment } from "./deployment.ts";
import { LeasePages } from "./lease-pages.ts";
import { NumberedNames, storedNames } from "./numbered-names.ts";
import { cellsUsed, type Axis } from "./variants.ts";

export const works = ["cycles", "lookups", "pages", "idle"] as const;
export type Work = (typeof works)[number];

const CLIENTS = 32;
/** The duration of one idle turn, which shows what a coordinator uses without calls. */
const IDLE_MS = 500;
const CELL = "1";

/** Makes the calls to one deployment, and continues their names from one measurement to the next. */
export class Caller {
  readonly deployment: Deployment;
  readonly #cells: readonly string[];
  readonly #stored = storedNames();
  readonly #fresh = new NumberedNames("fresh");
  #begun = 0;

  constructor(deployment: Deployment, axis: Axis) {
    this.deployment = deployment;
    this.#cells = cellsUsed(axis, deployment.variant);
  }

  async measure(work: Work, seconds: number): Promise<Loaded & { cpuMs: number }> {
    const before = this.deployment.cpuSeconds();
    const loaded = await this.#run(work, seconds);
    return { ...loaded, cpuMs: (this.deployment.cpuSeconds() - before) * 1_000 };
  }

  #run(work: Work, seconds: number): Promise<Loaded> {
    switch (work) {
      case "cycles":
        return this.#cycles(seconds);
      case "lookups":
        return this.#lookups(seconds);
      case "pages":
        return this.#pages(seconds);
      case "idle":
        return closedLoop({ clients: 1, seconds, turn: () => setTimeout(IDLE_MS, true) });
    }
  }

  /** Begins and commits new names from the whole alphabet, in all cells of the axis. */
  async #cycles(seconds: number): Promise<Loaded> {
    const cycles = new Cycles(this.deployment.serving, CLIENTS, 1, new Names("unused"), false);
    const turn = async (client: number): Promise<boolean> => {
      const { value } = this.#fresh.scattered(this.#begun++);
      return (await cycles.cycle(this.#cells[client % this.#cells.length] ?? CELL, [value])) === 200;
    };
    const loaded = await closedLoop({ clients: CLIENTS, seconds, turn });
    cycles.close();
    return loaded;
  }

  /** Looks up stored names at random, so that no page of the table is read more often than the others. */
  async #lookups(seconds: number): Promise<Loaded> {
    const lookups = new Lookups(this.deployment.serving, CLIENTS, false);
    const turn = async (): Promise<boolean> => {
      const { value } = this.#stored.at(Math.floor(Math.random() * this.deployment.variant.claims));
      return (await lookups.lookup(value)) === 200;
    };
    const loaded = await closedLoop({ clients: CLIENTS, seconds, turn });
    lookups.close();
    return loaded;
  }

  #pages(seconds: number): Promise<Loaded> {
    const pages = new LeasePages(this.deployment.serving, CELL);
    return closedLoop({ clients: 1, seconds, turn: async () => (await pages.next()) !== undefined });
  }
}
