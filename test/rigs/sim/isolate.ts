import type { Reply } from "../../../src/core/messages.ts";
import type { Network } from "./network.ts";
import type { Part } from "./part.ts";
import type { Owner } from "./scheduler.ts";

// Imported dynamically: it uses the platform's types, which this TypeScript project does not have.
const WITNESS = "../../../src/objects/witness.ts";

type Calls = Record<string, (message: object) => Promise<Reply<unknown>>>;

interface Objects {
  ledger: (cell: string) => Calls;
  shard: (index: number) => Calls;
  directory: () => Calls;
}

interface Witness {
  watch: (objects: Objects) => Objects;
}

/** An isolate of the Worker, through which all clients call. It adds what it has seen to calls (H2). */
export class Isolate {
  readonly #network: Network;
  readonly #module = import(WITNESS) as Promise<{ Witness: new () => Witness }>;
  #witness: Witness | undefined;

  constructor(network: Network) {
    this.#network = network;
  }

  /** Starts an isolate that has seen nothing. The first import takes real time. */
  async restart(): Promise<void> {
    const { Witness } = await this.#module;
    this.#witness = new Witness();
  }

  async send<T>(from: Owner, to: Part<object>, method: string, message: object): Promise<Reply<T>> {
    const send = (watched: object): Promise<Reply<T>> => this.#network.send(from, to, method, watched);
    const calls: Calls = { [method]: send };
    const objects = this.#witness?.watch({ ledger: () => calls, shard: () => calls, directory: () => calls });
    const [kind, number = ""] = to.name.split(" ");
    const watched =
      kind === "ledger"
        ? objects?.ledger(number)
        : kind === "shard"
          ? objects?.shard(Number(number))
          : objects?.directory();
    return ((await watched?.[method]?.(message)) ?? (await send(message))) as Reply<T>;
  }
}
