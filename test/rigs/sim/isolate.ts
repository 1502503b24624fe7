import type { TypeSet } from "../../../src/core/directory/messages.ts";
import { ok, type Result } from "../../../src/core/refusal.ts";
import type { Reply } from "../../../src/core/messages.ts";
import { TypesCopy } from "../../../src/http/types-copy.ts";
import { placementOf, shardsOf, type Placement } from "../../../src/core/placement.ts";
import type { Coordinator } from "./coordinator.ts";
import type { Network } from "./network.ts";
import type { Part } from "./part.ts";
import type { Owner } from "./scheduler.ts";

type Calls = Record<string, (message: object) => Promise<Reply<unknown>>>;

interface Objects {
  ledger: (cell: string) => Calls;
  shard: (index: number) => Calls;
  directory: () => Calls;
}

interface Witness {
  watch: (objects: Objects) => Objects;
}

/**
 * An isolate of the Worker. It adds what it has seen to calls (H2), and has a copy of the set of types. All
 * clients call through one of them. Begins and lookups of declared types read the types of any.
 */
export class Isolate {
  readonly #network: Network;
  readonly #coordinator: Coordinator;
  readonly #owner: Owner;
  // A string, because the module uses the platform's types, which this TypeScript project does not have.
  // oxlint-disable-next-line typescript/no-unnecessary-type-assertion
  readonly #module = import("../../../src/objects/witness.ts" as string) as Promise<{
    Witness: new () => Witness;
  }>;
  readonly #saveTypes: (set: TypeSet) => Promise<Result<number>>;
  #witness: Witness | undefined;
  #types: TypesCopy;
  #placement: Placement;

  constructor(
    name: string,
    network: Network,
    coordinator: Coordinator,
    saveTypes: (set: TypeSet) => Promise<Result<number>>,
  ) {
    this.#saveTypes = saveTypes;
    this.#network = network;
    this.#coordinator = coordinator;
    this.#owner = { name, dead: false };
    this.#placement = coordinator.envelope.placement;
    this.#types = this.#newCopy();
  }

  /** The placement that this isolate computes with. */
  get placement(): Placement {
    return this.#placement;
  }

  /** The number of shards of that placement. */
  get shards(): number {
    return shardsOf(this.#placement);
  }

  get types(): TypesCopy {
    return this.#types;
  }

  /** Starts an isolate that has seen nothing. The first import takes real time. */
  async restart(): Promise<void> {
    const { Witness } = await this.#module;
    this.#witness = new Witness();
    this.#placement = this.#coordinator.envelope.placement;
    this.#types = this.#newCopy();
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
    const reply = ((await watched?.[method]?.(message)) ?? (await send(message))) as Reply<T>;
    if (!reply.ok && reply.refusal.reason === "PLACEMENT_MISMATCH") this.#learn(reply.refusal.placement);
    return reply;
  }

  /** An object that refuses a placement says which one is in force (G3). */
  #learn(placement: Placement | undefined): void {
    if (placement === undefined || placement !== placementOf(shardsOf(placement))) return;
    if (shardsOf(placement) > this.shards) this.#placement = placement;
  }

  #newCopy(): TypesCopy {
    const { directory, limits, envelope } = this.#coordinator;
    const send = (method: string) => (message: object) => this.send(this.#owner, directory, method, message);
    const calls = { types: send("types"), useTypes: send("useTypes") };
    const objects = { directory: () => calls } as unknown as ConstructorParameters<typeof TypesCopy>[0];
    return new TypesCopy(objects, limits, () => ({ ...envelope, placement: this.placement }), {
      types: async () => ok(undefined),
      save: (set) => this.#saveTypes(set),
    });
  }
}
