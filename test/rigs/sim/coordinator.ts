import { Directory } from "../../../src/core/directory/directory.ts";
import { Ledger } from "../../../src/core/ledger/ledger.ts";
import { defaultLimits, type Limits } from "../../../src/core/limits.ts";
import { MESSAGE_VERSION, type Envelope, type Reply, type Told } from "../../../src/core/messages.ts";
import { placementOf } from "../../../src/core/placement.ts";
import { Shard } from "../../../src/core/shard/shard.ts";
import type { Network } from "./network.ts";
import { Part, type PartContext } from "./part.ts";
import type { SimulationSettings } from "./simulation-settings.ts";

/** A ledger whose answers to cells tell its newest point, as those of the Durable Object do. */
class TellingLedger extends Ledger {
  override begin(...[request]: Parameters<Ledger["begin"]>): ReturnType<Ledger["begin"]> {
    return this.#tell(super.begin(request));
  }

  override decide(...[request]: Parameters<Ledger["decide"]>): ReturnType<Ledger["decide"]> {
    return this.#tell(super.decide(request));
  }

  override get(...[request]: Parameters<Ledger["get"]>): ReturnType<Ledger["get"]> {
    return this.#tell(super.get(request));
  }

  override list(...[request]: Parameters<Ledger["list"]>): ReturnType<Ledger["list"]> {
    return this.#tell(super.list(request));
  }

  async #tell<T>(answer: Promise<Reply<T>>): Promise<Reply<T> & Told> {
    return { ...(await answer), ...this.told() };
  }
}

/** All objects of one deployment: the production core, over simulated disks, clocks and messages. */
export class Coordinator {
  readonly limits: Limits;
  readonly envelope: Envelope;
  readonly directory: Part<Directory>;
  readonly ledgers = new Map<string, Part<Ledger>>();
  readonly shards: Part<Shard>[];

  readonly nowMs: () => number;

  constructor(settings: SimulationSettings, context: PartContext, network: Network) {
    const limits: Limits = { ...defaultLimits, ...settings.limits };
    this.limits = limits;
    this.nowMs = () => context.scheduler.nowMs;
    this.envelope = { version: MESSAGE_VERSION, placement: placementOf(settings.shards) };
    this.directory = new Part("directory", context, (ports) => new Directory(ports, limits));
    this.shards = Array.from({ length: settings.shards }, (_, index) => {
      return new Part(`shard ${index}`, context, (ports, self) => {
        return new Shard(index, ports, limits, {
          directory: { confirm: (message) => network.send(self, this.directory, "confirm", message) },
          ledger: {
            inquire: (cell, message) => network.send(self, this.ledger(cell), "inquire", message),
            knowledge: (cell, message) => network.send(self, this.ledger(cell), "knowledge", message),
          },
        });
      });
    });
    for (let cell = 1; cell <= settings.cells; cell += 1) {
      const part = new Part(`ledger ${cell}`, context, (ports, self) => {
        return new TellingLedger(String(cell), ports, limits, {
          directory: { confirm: (message) => network.send(self, this.directory, "confirm", message) },
          shard: {
            exchange: (index, message) => network.send(self, this.shard(index), "exchange", message),
            settle: (index, message) => network.send(self, this.shard(index), "settle", message),
            listHolds: (index, message) => network.send(self, this.shard(index), "listHolds", message),
          },
        });
      });
      this.ledgers.set(String(cell), part);
    }
  }

  ledger(cell: string): Part<Ledger> {
    const part = this.ledgers.get(cell);
    if (part === undefined) throw new Error(`there is no ledger of cell ${cell}`);
    return part;
  }

  shard(index: number): Part<Shard> {
    const part = this.shards[index];
    if (part === undefined) throw new Error(`there is no shard ${index}`);
    return part;
  }

  get parts(): Part<object>[] {
    return [this.directory, ...this.ledgers.values(), ...this.shards];
  }
}
