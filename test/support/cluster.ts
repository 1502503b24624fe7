import { HOLDS } from "./holds.ts";
import { DatabaseSync } from "node:sqlite";
import type { DirectoryHalf } from "../../src/coordinator/kernel/capability.ts";
import { Directory } from "../../src/coordinator/kernel/directory/directory.ts";
import type { DirectoryPart } from "../../src/coordinator/kernel/directory/part.ts";
import * as kinds from "../../src/coordinator/capabilities/index.ts";
import type { Peers } from "../../src/coordinator/kernel/methods.ts";
import { Ledger } from "../../src/coordinator/kernel/ledger/ledger.ts";
import { defaultLimits, type Limits } from "../../src/common/limits.ts";
import type { Envelope, OperatorCall } from "../../src/coordinator/kernel/messages.ts";
import type { Calls, MethodList } from "../../src/coordinator/kernel/method.ts";
import { placementOf } from "../../src/coordinator/kernel/placement.ts";
import type { Ports } from "../../src/coordinator/kernel/ports.ts";
import { Shard } from "../../src/coordinator/kernel/shard/shard.ts";
import type { Answer } from "../../src/coordinator/objects/interceptor.ts";
import { callsOf } from "./calls-of.ts";
import { copied } from "./copied.ts";
import { NodeSql } from "./node-sql.ts";
import { operator, STAMP } from "./ops.ts";
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

type Receiver = Pick<Node<object>, "name" | "object">;

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
  #directoryPart!: DirectoryPart;
  readonly #ledgers = new Map<string, Node<Ledger>>();
  readonly #shards = new Map<number, Node<Shard>>();

  private constructor(shards: number, limits: Partial<Limits>) {
    // Decisions are sent at once, so that a test can count messages without letting time pass.
    this.limits = { ...defaultLimits, decisionWaitMs: 0, ...limits };
    this.envelope = { ...STAMP, placement: placementOf(shards), operator };
    const half: DirectoryHalf = {
      methods: {},
      make: (part) => {
        this.#directoryPart = part;
        return { handlers: {} };
      },
    };
    this.directory = new Node(
      "directory",
      (node) => new Directory(this.#ports(node), this.limits, { ...kinds.directory.halves, cluster: half }),
    );
  }

  static async start({
    cells = ["1", "2"],
    shards = 4,
    limits = {},
  }: { cells?: string[]; shards?: number; limits?: Partial<Limits> } = {}): Promise<Cluster> {
    const cluster = new Cluster(shards, limits);
    if (cells.length > 0) await cluster.#register(cells);
    return cluster;
  }

  ledger(cell: string): Node<Ledger> {
    let node = this.#ledgers.get(cell);
    if (node === undefined) {
      node = new Node(
        `ledger ${cell}`,
        (self: Node<Ledger>) =>
          new Ledger(cell, this.#ports(self), this.limits, this.#peers(self.name), kinds.ledger.halves),
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
        (self: Node<Shard>) =>
          new Shard(index, this.#ports(self), this.limits, this.#peers(self.name), kinds.shard.halves),
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
        database.prepare(`SELECT canonical, cell, lease FROM ${HOLDS}`).all() as {
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

  /** Registers cells as their first operator does, without the capability for it. */
  async #register(cells: readonly string[]): Promise<void> {
    const { commits, store, tables } = this.#directoryPart;
    const now = this.clock.now();
    const common = { locationHint: null, createdAtMs: now, updatedAtMs: now, removedAtMs: null };
    await commits.submit("confirm_placement", () => {
      store.setPlacement(this.envelope.placement);
      tables.raise(tables.stamp.speaks);
      for (const cell of cells)
        store.putCell({ ...common, cell, name: `cell-${cell}`, address: `https://cell-${cell}.example` });
    });
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

  #peers(from: string): Peers {
    const sent = <List extends MethodList>(methods: List, to: Receiver): Calls<List> =>
      callsOf(methods, (method, message) => this.#send(from, to, method, message));
    return {
      ledger: (cell) => sent(kinds.ledger.methods, this.ledger(cell)),
      shard: (index) => sent(kinds.shard.methods, this.shard(index)),
      directory: () => sent(kinds.directory.methods, this.directory),
    };
  }

  #slowly(): Promise<void> {
    return new Promise((arrive) => this.clock.after(SLOW_MS, arrive));
  }

  async #send(from: string, to: Receiver, method: string, message: Envelope): Promise<Answer> {
    const copy = copied(message);
    const carryOut = (): Promise<Answer> =>
      (Reflect.get(to.object, method) as (message: Envelope) => Promise<Answer>).call(to.object, copy);
    const call: Call = { from, to: to.name, method, message: copy };
    this.calls.push(call);
    const fate = this.fate(call);
    await this.clock.turn();
    const never = new Promise<never>(() => {});
    switch (fate) {
      case "lose":
        return never;
      case "late":
        this.clock.after(60_000, () => void carryOut().catch(() => {}));
        return never;
      case "lose_answer":
        void carryOut().catch(() => {});
        return never;
      case "twice":
        this.clock.after(30_000, () => void carryOut().catch(() => {}));
        return copied(await carryOut());
      case "slow":
        await this.#slowly();
        return copied(await carryOut());
      case "slow_answer": {
        const answer = copied(await carryOut());
        await this.#slowly();
        return answer;
      }
      case "deliver":
        return copied(await carryOut());
    }
  }
}
