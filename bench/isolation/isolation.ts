import { once } from "node:events";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import { closedLoop } from "../client/closed-loop.ts";
import { Cycles } from "../client/cycles.ts";
import { Names } from "../client/names.ts";
import { fillClaims } from "../growth/fill-claims.ts";
import { openObjects } from "../growth/objects.ts";
import { setUp } from "../growth/set-up.ts";
import { variantOf } from "../growth/variants.ts";
import { Peer } from "../peers.ts";
import type { Serving } from "../peers/serve.ts";
import type { Disturbance } from "./disturb.ts";
import type { Load, Server } from "./loads.ts";

export interface Scale {
  /** Stored claims of the cell that causes the load, under `npm start`. */
  claims: number;
  shards: number;
  rounds: number;
  /** The duration of one measurement. */
  seconds: number;
}

/** The latencies of the other cell's begins in one round, with and without the load. */
export interface Round {
  alone: Begins;
  loaded: Begins;
  /** Calls of the load that were begun during the round. */
  loadCalls: number;
}

interface Begins {
  p50Ms: number;
  p99Ms: number;
  begins: number;
  errors: number;
}

const LOAD_CELL = "1";
const OTHER_CELL = "2";
/** The clients of the other cell, each with one begin and commit at a time. */
const CLIENTS = 2;
/** After this time, all callers of a load wait for an answer. */
const SETTLE_MS = 500;

/** A deployment with two cells: one causes load, and the begins of the other are measured. */
export class Isolation {
  readonly #scale: Scale;
  readonly #peer: Peer;
  readonly #serving: Serving;
  readonly #fresh = new Names(`isolation${Date.now()}-`);

  private constructor(scale: Scale, peer: Peer) {
    this.#scale = scale;
    this.#peer = peer;
    this.#serving = peer.serving(peer.program === "standalone" ? "standalone" : "leasehold");
  }

  static async start(root: string, server: Server, scale: Scale): Promise<Isolation> {
    process.env["BENCH_SHARDS"] = String(scale.shards);
    if (server === "leasehold") await fill(join(root, server), scale);
    return new Isolation(scale, await Peer.start(server, root));
  }

  /** Measures with and without the load in turn, so that other load on the machine affects both. */
  async measure(load: Load): Promise<Round[]> {
    const rounds: Round[] = [];
    await this.#begins();
    for (let round = 0; round < this.#scale.rounds; round += 1) {
      const alone = await this.#begins();
      const stop = this.#disturb(load);
      await sleep(SETTLE_MS);
      const loaded = await this.#begins();
      rounds.push({ alone, loaded, loadCalls: await stop() });
    }
    return rounds;
  }

  async #begins(): Promise<Begins> {
    const cycles = new Cycles(this.#serving, CLIENTS, 1, this.#fresh, false);
    const turn = async (): Promise<boolean> => (await cycles.cycle(OTHER_CELL, cycles.freshNames())) === 200;
    const { latencies, turns, errors } = await closedLoop({
      clients: CLIENTS,
      seconds: this.#scale.seconds,
      turn,
    });
    cycles.close();
    return { p50Ms: latencies.percentile(0.5), p99Ms: latencies.percentile(0.99), begins: turns, errors };
  }

  /** The load has a thread of its own. In this one, making its calls would delay the begins. */
  #disturb(load: Load): () => Promise<number> {
    const { url, keys, router } = this.#serving;
    const workerData: Disturbance = { load, url, cell: LOAD_CELL, key: keys[LOAD_CELL] ?? "", router };
    const thread = new Worker(new URL("disturb.ts", import.meta.url), { workerData });
    return async () => {
      const calls = once(thread, "message");
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
      thread.postMessage("stop");
      return Number((await calls)[0]);
    };
  }

  stop(): Promise<void> {
    return this.#peer.stop();
  }
}

async function fill(stateFolder: string, { claims, shards }: Scale): Promise<void> {
  mkdirSync(stateFolder, { recursive: true });
  await setUp(stateFolder, variantOf({ cells: 2, shards }));
  const names = Array.from({ length: shards }, (_, shard) => `shard-${shard}`);
  const objects = openObjects(stateFolder, "ClaimShard", names);
  const files = names.flatMap((name) => objects.get(name) ?? []);
  await fillClaims(files, variantOf({ claims, cells: 1 }));
  for (const file of files) file.close();
}
