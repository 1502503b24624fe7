import type { TypeSet } from "../../../src/coordinator/capabilities/types/messages.ts";
import { ok, type Result } from "../../../src/coordinator/kernel/refusal.ts";
import * as kinds from "../../../src/coordinator/capabilities/index.ts";
import type { Envelope } from "../../../src/coordinator/kernel/messages.ts";
import type { MethodList } from "../../../src/coordinator/kernel/method.ts";
import { TypesCopy } from "../../../src/coordinator/capabilities/types/edge/types-copy.ts";
import { intercept } from "../../../src/coordinator/objects/interceptor.ts";
import { DIRECTORY_NAME, ledgerName, shardName } from "../../../src/coordinator/objects/identity.ts";
import { KnownFormat } from "../../../src/coordinator/isolate/known-placement.ts";
import { Witness } from "../../../src/coordinator/capabilities/loss/edge/witness.ts";
import { placementOf, shardsOf, type Placement } from "../../../src/coordinator/kernel/placement.ts";
import type { Coordinator } from "./coordinator.ts";
import type { Network } from "./network.ts";
import type { Part } from "./part.ts";
import type { Owner } from "./scheduler.ts";

const METHODS = {
  ledger: kinds.ledger.methods,
  shard: kinds.shard.methods,
  directory: kinds.directory.methods,
};

/**
 * An isolate of the Worker. It adds what it has seen to calls (H2), and has a copy of the set of types. All
 * clients call through one of them. Begins and lookups of declared types read the types of any.
 */
export class Isolate {
  readonly name: string;
  readonly #network: Network;
  readonly #coordinator: Coordinator;
  readonly #owner: Owner;
  readonly #saveTypes: (set: TypeSet) => Promise<Result<number>>;
  /** The newest format that its code speaks. Undefined in a run of one version. */
  #speaks: number | undefined;
  #witness = new Witness();
  #format: KnownFormat;
  #types: TypesCopy;
  #placement: Placement;

  constructor(
    name: string,
    network: Network,
    coordinator: Coordinator,
    saveTypes: (set: TypeSet) => Promise<Result<number>>,
  ) {
    this.name = name;
    this.#saveTypes = saveTypes;
    this.#network = network;
    this.#coordinator = coordinator;
    this.#owner = { name, dead: false };
    this.#placement = coordinator.envelope.placement;
    this.#speaks = coordinator.speaks;
    this.#format = new KnownFormat(this.#speaks);
    this.#types = this.#newCopy();
  }

  get speaks(): number | undefined {
    return this.#speaks;
  }

  /** A deployment: an isolate with other code starts. */
  deploy(speaks: number): void {
    this.#speaks = speaks;
    this.restart();
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

  /** Starts an isolate that has seen nothing. */
  restart(): void {
    this.#witness = new Witness();
    this.#format = new KnownFormat(this.#speaks);
    this.#placement = this.#coordinator.envelope.placement;
    this.#types = this.#newCopy();
  }

  async send<T>(from: Owner, to: Part<object>, method: string, message: object): Promise<Result<T>> {
    const [kind, number = ""] = to.name.split(" ") as [keyof typeof METHODS, string?];
    const part =
      kind === "ledger" ? ledgerName(number) : kind === "shard" ? shardName(Number(number)) : DIRECTORY_NAME;
    const level = (METHODS[kind] as MethodList)[method]?.level ?? "peer";
    const call = { kind, part, method, level, message: message as Envelope };
    const target = { [method]: (sent: Envelope) => this.#network.send(from, to, method, sent) };
    const reply = (await intercept([this.#format, this.#witness], call, target)) as Result<T>;
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
