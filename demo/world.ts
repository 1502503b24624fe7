import { join } from "node:path";
import { ClientLeases } from "../src/cell/remote-leases.ts";
import { createClient, type Client } from "../src/client/index.ts";
import { Cell } from "./cell.ts";
import { LocalDatabase } from "./local-database.ts";
import { lossyFetch } from "./lossy-fetch.ts";
import type { Plan } from "./names.ts";
import { patience } from "./patience.ts";
import { Random } from "./random.ts";
import { thousands } from "./table.ts";
import { Tally } from "./tally.ts";
import { timedFetch, Timings } from "./timed-fetch.ts";
import { Witness } from "./witness.ts";

/** Of the answers to writes: lost on the way back. */
const LOSS = 0.04;

export const cellIds = ["1", "2"] as const;
export type CellId = (typeof cellIds)[number];

interface Place {
  url: string;
  /** Has a folder `cells` for their databases. */
  folder: string;
  keys: { router: string; cells: Record<string, string> };
}

/** Everything that outlives a cell's process: the coordinator, the network, the disks, and who keeps count. */
export class World {
  readonly plan: Plan;
  readonly seed: number;
  readonly timings = new Timings();
  readonly witness = new Witness();
  readonly tallies: Record<CellId, Tally> = { "1": new Tally(), "2": new Tally() };
  readonly problems: string[] = [];
  lostAnswers = 0;
  lostYes = 0;
  readonly #place: Place;

  constructor(plan: Plan, seed: number, place: Place) {
    this.plan = plan;
    this.seed = seed;
    this.#place = place;
  }

  /** A process of a cell. The next one finds the same database, and nothing of what the last one had in memory. */
  startCell(id: CellId, life: number): Cell {
    return new Cell({
      id,
      leases: new ClientLeases(this.connect(id, true)),
      database: new LocalDatabase(join(this.#place.folder, "cells", `cell-${id}.sqlite`)),
      random: new Random(this.seed, "cell", id, life),
      tally: this.tallies[id],
    });
  }

  /** Lossy for what the cells do; a check must not be in doubt. */
  connect(who: CellId | "router", lossy = false): Client {
    const { url, keys } = this.#place;
    const key = who === "router" ? keys.router : keys.cells[who];
    if (key === undefined) throw new Error(`the coordinator has no key for cell ${who}`);
    const timed = timedFetch(this.timings, (to, init) => fetch(to, init));
    const lost = (status: number): void => {
      this.lostAnswers += 1;
      if (status < 300) this.lostYes += 1;
    };
    return createClient({
      ...patience,
      url,
      key,
      cell: who === "router" ? undefined : who,
      fetch: lossy ? lossyFetch(timed, { rate: LOSS, seed: this.seed }, lost) : timed,
    });
  }
}

export const activity = ({ timings, lostAnswers }: World): string =>
  `${thousands(timings.count)} requests, ${thousands(lostAnswers)} answers lost`;
