import { randomUUID } from "node:crypto";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { closedLoop } from "../client/closed-loop.ts";
import { Cycles } from "../client/cycles.ts";
import { HttpClient } from "../client/http-client.ts";
import { Names } from "../client/names.ts";
import { fillClaims } from "../growth/fill-claims.ts";
import { openObjects } from "../growth/objects.ts";
import { setUp, type Keys } from "../growth/set-up.ts";
import { variantOf } from "../growth/variants.ts";
import { Peer } from "../peers.ts";
import { documentReaders, pipelines, type Turn } from "./anonymous.ts";

export interface Scale {
  /** Stored claims of the cell that causes the load. */
  claims: number;
  shards: number;
  rounds: number;
  /** The duration of one measurement. */
  seconds: number;
}

/**
 * `readers`: four readers, two of which list with a filter that matches nothing, and two of which ask for a
 * digest of everything. `batches`: 100 begins of 1,000 claims at a time, each rolled back. `documents`: 32
 * callers without a key read `openapi.json`. `pipelines`: ten connections without a key send 64 KiB of
 * requests for it at once, and read nothing.
 */
export const loads = ["readers", "batches", "documents", "pipelines"] as const;
export type Load = (typeof loads)[number];

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
const BATCH_CLIENTS = 100;
const BATCH_CLAIMS = 1_000;

/** A deployment with two cells: one causes load, and the begins of the other are measured. */
export class Isolation {
  readonly #scale: Scale;
  readonly #peer: Peer;
  readonly #url: string;
  readonly #keys: Keys;
  readonly #fresh = new Names(`isolation${Date.now()}-`);

  private constructor(scale: Scale, peer: Peer, keys: Keys) {
    this.#scale = scale;
    this.#peer = peer;
    this.#url = peer.serving("leasehold").url;
    this.#keys = keys;
  }

  static async start(root: string, scale: Scale): Promise<Isolation> {
    const stateFolder = join(root, "leasehold");
    mkdirSync(stateFolder, { recursive: true });
    const { claims, shards } = scale;
    const keys = await setUp(stateFolder, variantOf({ cells: 2, shards }));
    const names = Array.from({ length: shards }, (_, shard) => `shard-${shard}`);
    const objects = openObjects(stateFolder, "ClaimShard", names);
    const files = names.flatMap((name) => objects.get(name) ?? []);
    await fillClaims(files, variantOf({ claims, cells: 1 }));
    for (const file of files) file.close();
    return new Isolation(scale, await Peer.start("leasehold", root), keys);
  }

  /** Measures with and without the load in turn, so that other load on the machine affects both. */
  async measure(load: Load): Promise<Round[]> {
    const rounds: Round[] = [];
    await this.#begins();
    for (let round = 0; round < this.#scale.rounds; round += 1) {
      const alone = await this.#begins();
      const disturbance = this.#disturb(load);
      const loaded = await this.#begins();
      rounds.push({ alone, loaded, loadCalls: await disturbance.stop() });
    }
    return rounds;
  }

  async #begins(): Promise<Begins> {
    const serving = { url: this.#url, keys: this.#keys.cells, router: this.#keys.router };
    const cycles = new Cycles(serving, CLIENTS, 1, this.#fresh, false);
    const turn = async (): Promise<boolean> => (await cycles.cycle(OTHER_CELL, cycles.freshNames())) === 200;
    const { latencies, turns, errors } = await closedLoop({
      clients: CLIENTS,
      seconds: this.#scale.seconds,
      turn,
    });
    cycles.close();
    return { p50Ms: latencies.percentile(0.5), p99Ms: latencies.percentile(0.99), begins: turns, errors };
  }

  #disturb(load: Load): { stop: () => Promise<number> } {
    const turns = {
      readers: () => this.#readers(),
      batches: () => this.#batches(),
      documents: documentReaders,
      pipelines: () => pipelines(this.#url),
    }[load]();
    const http = new HttpClient(this.#url, turns.length);
    const over = new AbortController();
    let calls = 0;
    const clients = turns.map(async (turn) => {
      while (!over.signal.aborted) {
        await turn(http);
        calls += 1;
      }
    });
    return {
      stop: async () => {
        over.abort();
        await Promise.all(clients);
        http.close();
        return calls;
      },
    };
  }

  #readers(): Turn[] {
    const key = this.#keys.cells[LOAD_CELL] ?? "";
    const path = `/v1/cells/${LOAD_CELL}/records`;
    const list = (http: HttpClient): Promise<number> =>
      http.send("GET", `${path}?source_type=RAILS_TABLE_ROUTES&bucket_type=EMAILS`, key);
    const body = JSON.stringify({ source_type: "RAILS_TABLE_ROUTES", ranges: [{}] });
    const digest = (http: HttpClient): Promise<number> => http.send("POST", `${path}/digests`, key, body);
    return [list, list, digest, digest];
  }

  #batches(): Turn[] {
    const key = this.#keys.cells[LOAD_CELL] ?? "";
    const begin = async (http: HttpClient): Promise<void> => {
      const creates = this.#fresh.fresh(BATCH_CLAIMS).map((value, index) => ({
        bucket: { type: "ROUTES", value },
        subject: { type: "GROUP", id: String(index + 1) },
        source: { type: "RAILS_TABLE_ROUTES", id: String(index + 1) },
      }));
      const path = `/v1/cells/${LOAD_CELL}/leases/${randomUUID()}`;
      await http.send("PUT", path, key, JSON.stringify({ creates }));
      // Otherwise, leases and their holds would remain for the next round.
      await http.send("POST", `${path}/rollback`, key);
    };
    return Array.from({ length: BATCH_CLIENTS }, () => begin);
  }

  stop(): Promise<void> {
    return this.#peer.stop();
  }
}
