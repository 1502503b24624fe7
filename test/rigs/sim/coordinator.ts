import type { OperatorCall } from "../../../src/core/messages.ts";
import { Directory } from "../../../src/core/directory/directory.ts";
import { Ledger } from "../../../src/core/ledger/ledger.ts";
import { defaultLimits, type Limits } from "../../../src/core/limits.ts";
import { MESSAGE_VERSION, type BucketKey, type Reply, type Told } from "../../../src/core/messages.ts";
import { placementOf, shardOf, shardsOf } from "../../../src/core/placement.ts";
import { Shard } from "../../../src/core/shard/shard.ts";
import { operator } from "../../support/ops.ts";
import type { Network } from "./network.ts";
import { Part, type PartContext } from "./part.ts";
import type { SimulationSettings } from "./simulation-settings.ts";

/** The calls of the Worker and the cron that use a point of the part. The others are calls of other parts. */
const TELLING = {
  ledger: [
    "begin",
    "decide",
    "renew",
    "get",
    "list",
    "pull",
    "maintain",
    "seenShards",
    "status",
    "reportStatus",
    "reportedStatus",
    "scrub",
  ],
  shard: [
    "lookup",
    "report",
    "listChanges",
    "listRecords",
    "digestRecords",
    "ping",
    "scrub",
    "growStep",
    "growthProgress",
  ],
} as const;

type Method = (message: unknown) => Promise<Reply<unknown>>;

/** Makes the answers of some calls tell the newest point of the part, as those of the Durable Object do. */
function telling<T extends { told(): Told }>(part: T, methods: readonly string[]): T {
  const calls = part as unknown as Record<string, Method>;
  for (const name of methods) {
    const call = calls[name]?.bind(part);
    if (call === undefined) throw new Error(`the part has no method ${name}`);
    calls[name] = async (message) => ({ ...(await call(message)), ...part.told() });
  }
  return part;
}

/** All objects of one deployment: the production core, over simulated disks, clocks and messages. */
export class Coordinator {
  readonly limits: Limits;
  /** Of messages by an operator. Other messages have it too. */
  readonly envelope: OperatorCall;
  readonly directory: Part<Directory>;
  readonly ledgers = new Map<string, Part<Ledger>>();
  /** All shards that the run can have, also those that hold nothing yet. */
  readonly allShards: Part<Shard>[];
  readonly #newShard: (index: number) => Part<Shard>;

  readonly nowMs: () => number;

  constructor(settings: SimulationSettings, context: PartContext, network: Network) {
    const limits: Limits = { ...defaultLimits, ...settings.limits };
    this.limits = limits;
    this.nowMs = () => context.scheduler.nowMs;
    this.envelope = { version: MESSAGE_VERSION, placement: placementOf(settings.shards), operator };
    this.directory = new Part("directory", context, (ports) => new Directory(ports, limits));
    const count = Math.max(settings.shards, ...(settings.growth?.to ?? []));
    this.#newShard = (index) =>
      new Part(`shard ${index}`, context, (ports, self) => {
        const shard = new Shard(index, ports, limits, {
          directory: { confirm: (message) => network.send(self, this.directory, "confirm", message) },
          shard: {
            receive: (target, message) => network.send(self, this.shard(target), "receive", message),
            ping: (source, message) => network.send(self, this.shard(source), "ping", message),
          },
          ledger: {
            inquire: (cell, message) => network.send(self, this.ledger(cell), "inquire", message),
            knowledge: (cell, message) => network.send(self, this.ledger(cell), "knowledge", message),
          },
        });
        return telling(shard, TELLING.shard);
      });
    this.allShards = Array.from({ length: count }, (_, index) => this.#newShard(index));
    for (let cell = 1; cell <= settings.cells; cell += 1) {
      const part = new Part(`ledger ${cell}`, context, (ports, self) => {
        const ledger = new Ledger(String(cell), ports, limits, {
          directory: { confirm: (message) => network.send(self, this.directory, "confirm", message) },
          shard: {
            exchange: (index, message) => network.send(self, this.shard(index), "exchange", message),
            settle: (index, message) => network.send(self, this.shard(index), "settle", message),
            wait: (index, message) => network.send(self, this.shard(index), "wait", message),
            leave: (index, message) => network.send(self, this.shard(index), "leave", message),
            listHolds: (index, message) => network.send(self, this.shard(index), "listHolds", message),
            listCellClaims: (index, message) =>
              network.send(self, this.shard(index), "listCellClaims", message),
            checkHolds: (index, message) => network.send(self, this.shard(index), "checkHolds", message),
          },
        });
        return telling(ledger, TELLING.ledger);
      });
      this.ledgers.set(String(cell), part);
    }
  }

  /** The shards of the placement in `envelope`. */
  get shards(): readonly Part<Shard>[] {
    return this.allShards.slice(0, shardsOf(this.envelope.placement));
  }

  /** The last phase of a run may use more shards than the judge watches. */
  addShards(count: number): void {
    for (let index = this.allShards.length; index < count; index += 1)
      this.allShards.push(this.#newShard(index));
  }

  /** From here on, operators use the placement with this number of shards. */
  hasGrown(shards: number): void {
    this.envelope.placement = placementOf(shards);
  }

  /** The shard of a name with the placement in `envelope`. */
  shardOf({ type, canonical }: BucketKey): number {
    return shardOf(type, canonical, shardsOf(this.envelope.placement));
  }

  ledger(cell: string): Part<Ledger> {
    const part = this.ledgers.get(cell);
    if (part === undefined) throw new Error(`there is no ledger of cell ${cell}`);
    return part;
  }

  shard(index: number): Part<Shard> {
    const part = this.allShards[index];
    if (part === undefined) throw new Error(`there is no shard ${index}`);
    return part;
  }

  get parts(): Part<object>[] {
    return [this.directory, ...this.ledgers.values(), ...this.allShards];
  }
}
