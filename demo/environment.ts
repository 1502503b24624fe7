import { join } from "node:path";
import { ClientLeases } from "../src/users/cell/remote-leases.ts";
import { createClient, type Client } from "../src/users/client/index.ts";
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

/** The share of answers to a cell's requests that get lost. */
const LOSS = 0.04;

export const cellIds = ["1", "2"] as const;
export type CellId = (typeof cellIds)[number];

interface EnvironmentOptions {
  url: string;
  /** Contains the folder `cells` for the cells' databases. */
  folder: string;
  keys: { router: string; cells: Record<string, string> };
}

/**
 * Everything that outlives a cell's process: the connection to the coordinator, the databases' folder, and
 * the counters.
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
   * Starts a process of a cell. It opens the database of the process before it, and starts with empty memory.
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

  /**
   * Creates a client. With `lossy`, some answers get lost, as for the cells' own work. The final check uses
   * clients that lose nothing, so that its answers are certain.
   */
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
