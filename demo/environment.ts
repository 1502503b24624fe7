import { join } from "node:path";
import { ClientLeases } from "../src/cell/remote-leases.ts";
import { createClient, type Client } from "../src/client/index.ts";
import { Cell } from "./cell.ts";
import { LocalDatabase } from "./local-database.ts";
import { lossyFetch } from "./lossy-fetch.ts";
import type { Workload } from "./names.ts";
import { patience } from "./patience.ts";
import { Random } from "./random.ts";
import { thousands } from "./table.ts";
import { CellCounts } from "./cell-counts.ts";
import { timedFetch, Timings } from "./timed-fetch.ts";
import { Witness } from "./witness.ts";

/** Of the answers to writes: lost on the way back. */
const LOSS = 0.04;

export const cellIds = ["1", "2"] as const;
export type CellId = (typeof cellIds)[number];

interface EnvironmentOptions {
  url: string;
  /** Has a folder `cells` for their databases. */
  folder: string;
  keys: { router: string; cells: Record<string, string> };
}

/**
 * Everything that outlives a cell's process: the coordinator, the network, the disks, and who keeps count.
 */
export class Environment {
  readonly workload: Workload;
  readonly seed: number;
  readonly timings = new Timings();
  readonly witness = new Witness();
  readonly counts: Record<CellId, CellCounts> = { "1": new CellCounts(), "2": new CellCounts() };
  readonly problems: string[] = [];
  lostAnswers = 0;
  lostGrants = 0;
  readonly #options: EnvironmentOptions;

  constructor(workload: Workload, seed: number, options: EnvironmentOptions) {
    this.workload = workload;
    this.seed = seed;
    this.#options = options;
  }

  /**
   * A process of a cell. The next one finds the same database, and nothing of what the last one had in
   * memory.
   */
  startCell(id: CellId, generation: number): Cell {
    return new Cell({
      id,
      leases: new ClientLeases(this.connect(id, true)),
      database: new LocalDatabase(join(this.#options.folder, "cells", `cell-${id}.sqlite`)),
      random: new Random(this.seed, "cell", id, generation),
      counts: this.counts[id],
    });
  }

  /** Lossy for what the cells do; a check must not be in doubt. */
  connect(who: CellId | "router", lossy = false): Client {
    const { url, keys } = this.#options;
    const key = who === "router" ? keys.router : keys.cells[who];
    if (key === undefined) throw new Error(`the coordinator has no key for cell ${who}`);
    const timed = timedFetch(this.timings, (to, init) => fetch(to, init));
    const lost = (status: number): void => {
      this.lostAnswers += 1;
      if (status < 300) this.lostGrants += 1;
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

export const describeActivity = ({ timings, lostAnswers }: Environment): string =>
  `${thousands(timings.count)} requests, ${thousands(lostAnswers)} answers lost`;
