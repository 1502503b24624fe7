import { Directory } from "../../../src/coordinator/kernel/directory/directory.ts";
import * as kinds from "../../../src/coordinator/capabilities/index.ts";
import type { Peers } from "../../../src/coordinator/kernel/methods.ts";
import { Ledger } from "../../../src/coordinator/kernel/ledger/ledger.ts";
import { defaultLimits, type Limits } from "../../../src/common/limits.ts";
import { refused, type Result } from "../../../src/coordinator/kernel/refusal.ts";
import {
  type BucketKey,
  type Envelope,
  type OperatorCall,
  type Told,
} from "../../../src/coordinator/kernel/messages.ts";
import type { Calls, MethodList } from "../../../src/coordinator/kernel/method.ts";
import { placementOf, shardOf, shardsOf } from "../../../src/coordinator/kernel/placement.ts";
import type { HeldNames } from "../../../src/coordinator/kernel/shard/held-names.ts";
import { Shard } from "../../../src/coordinator/kernel/shard/shard.ts";
import { ShardLog } from "../../../src/coordinator/kernel/shard/shard-log.ts";
import { callsOf } from "../../support/calls-of.ts";
import { operator, STAMP } from "../../support/ops.ts";
import type { Stamp } from "../../../src/coordinator/kernel/formats.ts";
import { UnknownTables, type Tables } from "../../../src/coordinator/kernel/tables.ts";
import type { Network } from "./network.ts";
import { Part, type Instance, type PartContext } from "./part.ts";
import type { Owner } from "./scheduler.ts";
import type { SimulationSettings } from "./simulation-settings.ts";
import { NEWER, OLDER } from "./versions.ts";

type Methods = Record<string, (message: Envelope) => Promise<Result<unknown>>>;

interface Core {
  tables: Tables;
  told(): Told;
}

/** The messages that an object has not refused for a format. */
const carriedOut = new WeakSet();

/** Whether an object has not refused this message for a format. */
export const wasCarriedOut = (message: object): boolean => carriedOut.has(message);

/** Makes an object that refuses everything if its code cannot work with its tables (M5). */
function served<T extends Core>(make: () => T, methods: MethodList): T {
  try {
    return telling(make(), methods);
  } catch (error) {
    if (!(error instanceof UnknownTables)) throw error;
    const refusal = refused("UNAVAILABLE", error.message, { reason: "UNKNOWN_TABLES" });
    const calls = Object.keys(methods).map((name) => [name, async () => refusal]);
    return { ...Object.fromEntries(calls), alarm: () => Promise.reject(error) } as T;
  }
}

/** Makes answers tell the newest point of the part, as those of the Durable Object do. */
function telling<T extends Core>(part: T, methods: MethodList): T {
  const calls = part as unknown as Methods;
  for (const [name, { tells }] of Object.entries(methods)) {
    const call = calls[name]?.bind(part);
    if (call !== undefined)
      calls[name] = (message) =>
        part.tables.serve(message as Envelope & Stamp, async () => {
          carriedOut.add(message);
          return { ...(await call(message)), ...(tells ? part.told() : {}) };
        });
  }
  return part;
}

/** What a part adds to its messages, as a Durable Object does. */
const stampOf = (self: Owner): Stamp => (self as Instance<{ tables: Tables }>).object.tables.stamp;

/** All objects of one deployment: the production core, over simulated disks, clocks and messages. */
export class Coordinator {
  readonly limits: Limits;
  /** Of messages by an operator. Other messages have it too. */
  readonly envelope: OperatorCall;
  readonly directory: Part<Directory>;
  readonly ledgers = new Map<string, Part<Ledger>>();
  /** All shards that the run can have, also those that hold nothing yet. */
  readonly allShards: Part<Shard>[];
  /** What the last instance of each shard has in memory of its holds. */
  readonly held = new Map<Part<object>, HeldNames>();
  /** The newest format that the code of new parts speaks. Undefined in a run of one version. */
  speaks: number | undefined;
  readonly #newShard: (index: number) => Part<Shard>;

  readonly nowMs: () => number;

  constructor(settings: SimulationSettings, context: PartContext, network: Network) {
    const limits: Limits = { ...defaultLimits, ...settings.limits };
    this.limits = limits;
    this.nowMs = () => context.scheduler.nowMs;
    this.speaks = settings.versions && OLDER;
    const stamp = settings.versions === undefined ? STAMP : { speaks: NEWER, format: OLDER };
    this.envelope = { ...stamp, placement: placementOf(settings.shards), operator };
    const peersOf = (self: Owner): Peers => {
      const sent = <List extends MethodList>(methods: List, part: Part<object>): Calls<List> =>
        callsOf(methods, (method, message) =>
          network.send(self, part, method, { ...message, ...stampOf(self) }),
        );
      return {
        ledger: (cell) => sent(kinds.ledger.methods, this.ledger(cell)),
        shard: (index) => sent(kinds.shard.methods, this.shard(index)),
        directory: () => sent(kinds.directory.methods, this.directory),
      };
    };
    this.directory = new Part("directory", this.speaks, context, (ports) =>
      served(() => new Directory(ports, limits, kinds.directory.halves), kinds.directory.methods),
    );
    const count = Math.max(settings.shards, ...(settings.growth?.to ?? []));
    this.#newShard = (index) => {
      const shard: Part<Shard> = new Part(`shard ${index}`, this.speaks, context, (ports, self) => {
        this.held.delete(shard);
        const logOf = (): ShardLog => {
          const log = new ShardLog(ports.sql, ports.clock, limits, settings.logRows);
          this.held.set(shard, log.held);
          return log;
        };
        return served(
          () => new Shard(index, ports, limits, peersOf(self), kinds.shard.halves, logOf),
          kinds.shard.methods,
        );
      });
      return shard;
    };
    this.allShards = Array.from({ length: count }, (_, index) => this.#newShard(index));
    for (let cell = 1; cell <= settings.cells; cell += 1) {
      const part = new Part(`ledger ${cell}`, this.speaks, context, (ports, self) =>
        served(
          () => new Ledger(String(cell), ports, limits, peersOf(self), kinds.ledger.halves),
          kinds.ledger.methods,
        ),
      );
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
