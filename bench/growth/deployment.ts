import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { Peer } from "../peers.ts";
import type { Serving } from "../peers/serve.ts";
import { fill } from "./fill.ts";
import type { Variant } from "./variants.ts";

/** A coordinator on a filled state, as a process of its own. */
export class Deployment {
  readonly variant: Variant;
  readonly serving: Serving;
  readonly #peer: Peer;

  private constructor(variant: Variant, peer: Peer, serving: Serving) {
    this.variant = variant;
    this.#peer = peer;
    this.serving = serving;
  }

  /** Its folder is `root`, which must be its own. */
  static async start(root: string, variant: Variant): Promise<Deployment> {
    // Where the program `leasehold` looks for its state; how many shards it was made with is in there.
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

  /** Of the process that starts the runtime. */
  get pid(): number {
    return this.#peer.pid;
  }

  stop(): Promise<void> {
    return this.#peer.stop();
  }
}
