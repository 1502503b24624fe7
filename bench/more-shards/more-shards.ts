import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import type { DevKeys } from "../../src/hosts/workerd/dev-keys.ts";
import { closedLoop } from "../client/closed-loop.ts";
import { Cycles } from "../client/cycles.ts";
import { Latencies } from "../client/latencies.ts";
import { Names } from "../client/names.ts";
import { fillClaims } from "../growth/fill-claims.ts";
import { openObjects } from "../growth/objects.ts";
import { setUp, type Keys } from "../growth/set-up.ts";
import { variantOf } from "../growth/variants.ts";
import { Peer } from "../peers.ts";

export interface Scale {
  claims: number;
  from: number;
  to: number;
  /** The duration of the measurement before the growth, and of each one during it. */
  seconds: number;
  /** The pause after each request for steps, as an operator or a cron makes. */
  pauseMs: number;
}

/**
 * The part of a growth in which cycles were measured. `cut`: from the order until every name is handed over.
 * `deleting`: until the growth has ended. `growing`: these three together.
 */
export type Phase = "quiet" | "copying" | "cut" | "deleting" | "growing" | "afterwards";

export interface Measured {
  latencies: Latencies;
  errors: number;
  seconds: number;
}

interface GrowthStatus {
  shards: number;
  growth: { can_be_cut: boolean; phase: string; sources: { state: string | null }[] } | null;
}

const CELL = "1";
/** The clients of the cell, each with one begin and commit at a time. */
const CLIENTS = 2;
const PATH = "/v1/admin/growth";

/** A deployment that gets more shards while a cell works. */
export class MoreShards {
  readonly #scale: Scale;
  readonly #peer: Peer;
  readonly #url: string;
  readonly #keys: Keys;
  readonly #operatorKey: string;
  readonly #fresh = new Names(`more-shards${Date.now()}-`);

  private constructor(scale: Scale, peer: Peer, keys: Keys, operatorKey: string) {
    this.#scale = scale;
    this.#peer = peer;
    this.#url = peer.serving("leasehold").url;
    this.#keys = keys;
    this.#operatorKey = operatorKey;
  }

  static async start(root: string, scale: Scale): Promise<MoreShards> {
    const stateFolder = join(root, "leasehold");
    mkdirSync(stateFolder, { recursive: true });
    const { claims, from } = scale;
    const keys = await setUp(stateFolder, variantOf({ cells: 2, shards: from }));
    const names = Array.from({ length: from }, (_, shard) => `shard-${shard}`);
    const objects = openObjects(stateFolder, "ClaimShard", names);
    const files = names.flatMap((name) => objects.get(name) ?? []);
    await fillClaims(files, variantOf({ claims, cells: 1 }));
    for (const file of files) file.close();
    const { operator } = JSON.parse(readFileSync(join(stateFolder, "dev-keys.json"), "utf8")) as DevKeys;
    return new MoreShards(scale, await Peer.start("leasehold", root), keys, operator);
  }

  async measure(): Promise<Map<Phase, Measured>> {
    const { seconds, to } = this.#scale;
    await this.#cycles(() => setTimeout(1_000 * Math.min(1, seconds)));
    const quiet = await this.#cycles(() => setTimeout(1_000 * seconds));
    await this.#call("POST", PATH, { shards: to, reason: "benchmark" });
    const copying = await this.#cycles(() => this.#stepUntil(({ growth }) => growth?.can_be_cut === true));
    const cut = await this.#cycles(async () => {
      await this.#call("POST", `${PATH}/cut`, { reason: "benchmark" });
      await this.#stepUntil(isHandedOver);
    });
    const deleting = await this.#cycles(() => this.#stepUntil(({ growth }) => growth === null));
    const growing = together([copying, cut, deleting]);
    const afterwards = await this.#cycles(() => setTimeout(1_000 * seconds));
    return new Map<Phase, Measured>(
      Object.entries({ quiet, copying, cut, deleting, growing, afterwards }) as [Phase, Measured][],
    );
  }

  /** Measures cycles until the work has ended. */
  async #cycles(work: () => Promise<unknown>): Promise<Measured> {
    const serving = { url: this.#url, keys: this.#keys.cells, router: this.#keys.router };
    const cycles = new Cycles(serving, CLIENTS, 1, this.#fresh, false);
    const turn = async (): Promise<boolean> => (await cycles.cycle(CELL, cycles.freshNames())) === 200;
    const over = { isOver: false };
    const working = work().finally(() => {
      over.isOver = true;
    });
    const latencies = new Latencies();
    let errors = 0;
    const started = performance.now();
    while (!over.isOver) {
      const loaded = await closedLoop({ clients: CLIENTS, seconds: 0.1, turn });
      for (const ms of loaded.latencies.all) latencies.add(ms);
      errors += loaded.errors;
    }
    await working;
    cycles.close();
    return { latencies, errors, seconds: (performance.now() - started) / 1_000 };
  }

  async #stepUntil(isDone: (status: GrowthStatus) => boolean): Promise<void> {
    for (;;) {
      if (isDone(await this.#call("POST", `${PATH}/steps`))) return;
      await setTimeout(this.#scale.pauseMs);
    }
  }

  async #call(method: string, path: string, body?: object): Promise<GrowthStatus> {
    const answer = await fetch(`${this.#url}${path}`, {
      method,
      headers: { authorization: `Bearer ${this.#operatorKey}`, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    if (!answer.ok)
      throw new Error(`${method} ${path} was answered ${answer.status}: ${await answer.text()}`);
    return (await answer.json()) as GrowthStatus;
  }

  stop(): Promise<void> {
    return this.#peer.stop();
  }
}

function together(parts: readonly Measured[]): Measured {
  const latencies = new Latencies();
  for (const part of parts) for (const ms of part.latencies.all) latencies.add(ms);
  const sumOf = (key: "errors" | "seconds"): number => parts.reduce((sum, part) => sum + part[key], 0);
  return { latencies, errors: sumOf("errors"), seconds: sumOf("seconds") };
}

const isHandedOver = ({ growth }: GrowthStatus): boolean =>
  growth === null ||
  (growth.phase === "cut" && growth.sources.every(({ state }) => state === "cleaning" || state === "done"));
