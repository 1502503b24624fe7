import { DatabaseSync } from "node:sqlite";
import type { OperatorCall } from "../../src/core/messages.ts";
import { Directory } from "../../src/core/directory/directory.ts";
import { Ledger } from "../../src/core/ledger/ledger.ts";
import { defaultLimits, type Limits } from "../../src/core/limits.ts";
import { MESSAGE_VERSION, type Reply } from "../../src/core/messages.ts";
import { placementOf } from "../../src/core/placement.ts";
import type { Ports } from "../../src/core/ports.ts";
import { Shard } from "../../src/core/shard/shard.ts";
import { copied } from "./copied.ts";
import { NodeSql } from "./node-sql.ts";
import { operator } from "./ops.ts";
import { VirtualClock } from "./virtual-clock.ts";

/** One message between two objects, as the fault hook gets it. */
export interface Call {
  from: string;
  to: string;
  method: string;
  message: unknown;
}

/**
 * What happens to a message. `lose`: it is never carried out. `lose_answer`: it is carried out, but its
 * answer is lost. `late`: it is carried out after the sender has given up. `slow_answer`: it is carried out,
 * and its answer takes as long as a slow message.
 */
export type Fate = "deliver" | "lose" | "lose_answer" | "late" | "twice" | "slow" | "slow_answer";

/** The delay of a slow message in milliseconds, well below every timeout. */
const SLOW_MS = 40;

class Node<T> {
  readonly database = new DatabaseSync(":memory:");
  readonly name: string;
  sql: NodeSql;
  alarmAtMs: number | undefined;
  halted = false;
  object: T;
  readonly #make: (node: Node<T>) => T;

  constructor(name: string, make: (node: Node<T>) => T) {
    this.name = name;
    this.#make = make;
    this.sql = new NodeSql(this.database);
    this.object = make(this);
  }

  /**
   * Replaces the instance. The old one keeps running without its storage, and the new one starts from what is
   * durable.
   *
   * @param keepsStorage whether the old instance can still read and write
   */
  restart({ keepsStorage = false } = {}): T {
    const before = this.object;
    if (!keepsStorage) this.sql.revoke();
    const { counts } = this.sql;
    this.sql = new NodeSql(this.database);
    Object.assign(this.sql.counts, counts);
    this.halted = false;
    this.object = this.#make(this);
    return before;
  }
}

let serial = 0;

/**
 * The whole coordinator in one process: the core over node:sqlite, with virtual time and with messages whose
 * fate a test may choose.
 */
export class Cluster {
  readonly clock = new VirtualClock();
  readonly limits: Limits;
  /** Of messages by an operator. Other messages may have it too. */
  readonly envelope: OperatorCall;
  readonly directory: Node<Directory>;
  readonly calls: Call[] = [];
  readonly logged: { event: string; fields: Record<string, unknown> }[] = [];
  /** The number of next alarm reads that fail. */
  failAlarms = 0;
  fate: (call: Call) => Fate = () => "deliver";
  readonly #ledgers = new Map<string, Node<Ledger>>();
  readonly #shards = new Map<number, Node<Shard>>();

  private constructor(shards: number, limits: Partial<Limits>) {
    // Decisions are sent at once, so that a test can count messages without letting time pass.
    this.limits = { ...defaultLimits, decisionWaitMs: 0, ...limits };
    this.envelope = { version: MESSAGE_VERSION, placement: placementOf(shards), operator };
    this.directory = new Node("directory", (node) => new Directory(this.#ports(node), this.limits));
  }

  static async start({
    cells = ["1", "2"],
    shards = 4,
    limits = {},
  }: { cells?: string[]; shards?: number; limits?: Partial<Limits> } = {}): Promise<Cluster> {
    const cluster = new Cluster(shards, limits);
    for (const cell of cells) {
      await cluster.directory.object.addCell({
        ...cluster.envelope,
        cell,
        name: `cell-${cell}`,
        address: `https://cell-${cell}.example`,
        locationHint: null,
      });
    }
    return cluster;
  }

  ledger(cell: string): Node<Ledger> {
    let node = this.#ledgers.get(cell);
    if (node === undefined) {
      node = new Node(
        `ledger ${cell}`,
        (self: Node<Ledger>) => new Ledger(cell, this.#ports(self), this.limits, this.#ledgerPeers(self)),
      );
      this.#ledgers.set(cell, node);
    }
    return node;
  }

  shard(index: number): Node<Shard> {
    let node = this.#shards.get(index);
    if (node === undefined) {
      node = new Node(
        `shard ${index}`,
        (self: Node<Shard>) => new Shard(index, this.#ports(self), this.limits, this.#shardPeers(self)),
      );
      this.#shards.set(index, node);
    }
    return node;
  }

  get nodes(): (Node<Ledger> | Node<Shard>)[] {
    return [...this.#ledgers.values(), ...this.#shards.values()];
  }

  get shards(): [number, Node<Shard>][] {
    return [...this.#shards];
  }

  /** Lets time pass for all objects, and rings their alarms. */
  async pass(ms: number): Promise<void> {
    const until = this.clock.now() + ms;
    while (this.clock.now() < until) {
      await this.clock.pass(Math.min(500, until - this.clock.now()));
      for (const node of this.nodes) {
        if (node.alarmAtMs === undefined || node.alarmAtMs > this.clock.now()) continue;
        node.alarmAtMs = undefined;
        await this.clock.runUntil(node.object.alarm());
      }
    }
  }

  uuid(): string {
    serial += 1;
    return `00000000-0000-4000-8000-${String(serial).padStart(12, "0")}`;
  }

  /** Returns all holds of all shards. */
  holds(): { canonical: string; cell: string; lease: string }[] {
    return [...this.#shards.values()].flatMap(
      ({ database }) =>
        database.prepare("SELECT canonical, cell, lease FROM hold").all() as {
          canonical: string;
          cell: string;
          lease: string;
        }[],
    );
  }

  claims(): { canonical: string; cell: string; value: string; epoch: number }[] {
    return [...this.#shards.values()].flatMap(
      ({ database }) =>
        database.prepare("SELECT canonical, cell, value, epoch FROM claim").all() as {
          canonical: string;
          cell: string;
          value: string;
          epoch: number;
        }[],
    );
  }

  messages(method?: string): Call[] {
    return this.calls.filter((call) => method === undefined || call.method === method);
  }

  transactions(): number {
    return this.nodes.reduce((sum, { sql }) => sum + sql.counts.transactions, 0);
  }

  #ports<T>(node: Node<T>): Ports {
    const { sql } = node;
    return {
      sql,
      clock: this.clock,
      randomness: { uuid: () => this.uuid(), fraction: () => 0.5 },
      alarm: {
        get: async () => {
          if (this.failAlarms > 0) {
            this.failAlarms -= 1;
            throw new Error("the alarm cannot be read");
          }
          return node.alarmAtMs ?? null;
        },
        set: (atMs) => {
          node.alarmAtMs = atMs;
        },
      },
      halt: () => {
        node.halted = true;
        sql.revoke();
      },
      log: (event, fields) => void this.logged.push({ event, fields }),
    };
  }

  #ledgerPeers(from: Node<Ledger>): ConstructorParameters<typeof Ledger>[3] {
    return {
      directory: {
        confirm: (message) =>
          this.#send(from.name, this.directory.name, "confirm", message, (copy) =>
            this.directory.object.confirm(copy),
          ),
      },
      shard: {
        exchange: (index, message) =>
          this.#send(from.name, `shard ${index}`, "exchange", message, (copy) =>
            this.shard(index).object.exchange(copy),
          ),
        settle: (index, message) =>
          this.#send(from.name, `shard ${index}`, "settle", message, (copy) =>
            this.shard(index).object.settle(copy),
          ),
        wait: (index, message) =>
          this.#send(from.name, `shard ${index}`, "wait", message, (copy) =>
            this.shard(index).object.wait(copy),
          ),
        leave: (index, message) =>
          this.#send(from.name, `shard ${index}`, "leave", message, (copy) =>
            this.shard(index).object.leave(copy),
          ),
        listHolds: (index, message) =>
          this.#send(from.name, `shard ${index}`, "listHolds", message, (copy) =>
            this.shard(index).object.listHolds(copy),
          ),
        listCellClaims: (index, message) =>
          this.#send(from.name, `shard ${index}`, "listCellClaims", message, (copy) =>
            this.shard(index).object.listCellClaims(copy),
          ),
        checkHolds: (index, message) =>
          this.#send(from.name, `shard ${index}`, "checkHolds", message, (copy) =>
            this.shard(index).object.checkHolds(copy),
          ),
      },
    };
  }

  #shardPeers(from: Node<Shard>): ConstructorParameters<typeof Shard>[3] {
    return {
      directory: {
        confirm: (message) =>
          this.#send(from.name, this.directory.name, "confirm", message, (copy) =>
            this.directory.object.confirm(copy),
          ),
      },
      shard: {
        receive: (target, message) =>
          this.#send(from.name, `shard ${target}`, "receive", message, (copy) =>
            this.shard(target).object.receive(copy),
          ),
        ping: (source, message) =>
          this.#send(from.name, `shard ${source}`, "ping", message, (copy) =>
            this.shard(source).object.ping(copy),
          ),
      },
      ledger: {
        inquire: (cell, message) =>
          this.#send(from.name, `ledger ${cell}`, "inquire", message, (copy) =>
            this.ledger(cell).object.inquire(copy),
          ),
        knowledge: (cell, message) =>
          this.#send(from.name, `ledger ${cell}`, "knowledge", message, (copy) =>
            this.ledger(cell).object.knowledge(copy),
          ),
      },
    };
  }

  #slowly(): Promise<void> {
    return new Promise((arrive) => this.clock.after(SLOW_MS, arrive));
  }

  async #send<M, T>(
    from: string,
    to: string,
    method: string,
    message: M,
    carryOut: (message: M) => Promise<Reply<T>>,
  ): Promise<Reply<T>> {
    const copy = copied(message);
    const call: Call = { from, to, method, message: copy };
    this.calls.push(call);
    const fate = this.fate(call);
    await this.clock.turn();
    const never = new Promise<never>(() => {});
    switch (fate) {
      case "lose":
        return never;
      case "late":
        this.clock.after(60_000, () => void carryOut(copy).catch(() => {}));
        return never;
      case "lose_answer":
        void carryOut(copy).catch(() => {});
        return never;
      case "twice":
        this.clock.after(30_000, () => void carryOut(copy).catch(() => {}));
        return copied(await carryOut(copy));
      case "slow":
        await this.#slowly();
        return copied(await carryOut(copy));
      case "slow_answer": {
        const answer = copied(await carryOut(copy));
        await this.#slowly();
        return answer;
      }
      case "deliver":
        return copied(await carryOut(copy));
    }
  }
}
