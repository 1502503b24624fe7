import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { Peer } from "../peers.ts";
import type { Serving } from "../peers/serve.ts";
import { fill } from "./fill.ts";
import type { Variant } from "./variants.ts";

/** A coordinator with a filled state, in a process of its own. */
export class Deployment {
  readonly variant: Variant;
  readonly serving: Serving;
  readonly #peer: Peer;

  private constructor(variant: Variant, peer: Peer, serving: Serving) {
    this.variant = variant;
    this.#peer = peer;
    this.serving = serving;
  }

  /** Fills a state in `root`, which no other deployment may use, and starts a coordinator on it. */
  static async start(root: string, variant: Variant): Promise<Deployment> {
    // The program `leasehold` looks for its state in this folder. The state also records the number of
    // shards.
    const stateFolder = join(root, "leasehold");
    mkdirSync(stateFolder, { recursive: true });
    const { cells, router } = await fill(stateFolder, variant);
    const peer = await Peer.start("leasehold", root);
    const { url } = peer.serving("leasehold");
    return new Deployment(variant, peer, { url, keys: cells, router });
  }

  cpuSeconds(): number {
    return this.#peer.cpuSeconds();
  }

  /** The id of the process that starts the runtime. */
  get pid(): number {
    return this.#peer.pid;
  }

  stop(): Promise<void> {
    return this.#peer.stop();
  }
}
