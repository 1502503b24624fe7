/**
 * Deployments for tests, any number of them inside one workerd. The names of a deployment's objects begin
 * with its number: `cell-121` and `shard-120` are the ledger of the first cell and the first shard of
 * deployment 12. Objects and tests share one isolate, so a deployment is a plain object that both find by its
 * number.
 */
import {
  isAt,
  Journal,
  type ArmedFault,
  type CallRecord,
  type Fault,
  type WriteFault,
} from "./armed-fault.ts";
import type { WritePoint } from "../../../src/coordinator/kernel/write-points.ts";
import { isD1Write, writeLabel } from "./d1-names.ts";

/** The number of cells or shards that one deployment may have. */
const ROOM = 10;

const deployments = new Map<number, TestDeployment>();
let lastId = 0;

export function newDeployment(variables: Record<string, string> = {}, database = "DB"): TestDeployment {
  lastId += 1;
  const deployment = new TestDeployment(lastId, variables, database);
  deployments.set(deployment.id, deployment);
  return deployment;
}

export function deploymentOf(id: number): TestDeployment {
  const deployment = deployments.get(id);
  if (deployment === undefined) throw new Error(`there is no deployment ${id}`);
  return deployment;
}

/** The deployment of an object, and its `label`, which is short and the same in every deployment. */
export interface ObjectIdentity {
  deployment: TestDeployment;
  label: string;
}

export function identityOf(physical: string | undefined): ObjectIdentity {
  const [prefix, number] = (physical ?? "").split("-");
  const n = Number(number);
  if (prefix === "directory") return { deployment: deploymentOf(n), label: "directory" };
  return {
    deployment: deploymentOf(Math.floor(n / ROOM)),
    label: `${prefix === "cell" ? "ledger" : "shard"}${n % ROOM}`,
  };
}

/** The platform lost an alarm, which never rings. */
export class LostAlarm extends Error {}

/** A promise that never settles, for calls of a dead instance. */
export const never = (): Promise<never> => new Promise(() => {});

/** A call: its sender, its receiver, and how to deliver it any number of times. */
export interface Sending {
  from: string;
  to: string;
  method: string;
  deliver: () => Promise<unknown>;
}

export class TestDeployment {
  readonly id: number;
  /** The limits and other variables of this deployment. */
  readonly variables: Record<string, string>;
  /** The name of its D1 binding. */
  readonly database: string;
  journal = new Journal();
  /** The faults. Before the scenario begins, there are none and no call is counted. */
  faults: ArmedFault[] = [];
  /** How far the objects' clocks are ahead of the real clock. */
  skewMs = 0;
  /** Instances of an earlier generation are dead. */
  generation = 0;
  /** The objects whose instance is about to die. */
  readonly doomed = new Set<string>();
  /** The objects that were used. */
  readonly used = new Set<string>();
  /** When the last object that waits for a lost answer gives up. */
  #waitingUntilMs = 0;
  readonly #generations = new Map<string, number>();
  readonly #late: (() => Promise<unknown>)[] = [];
  /** The calls that are under way, by their receivers: D1, or an object. */
  readonly #calls = { d1: new Set<Promise<unknown>>(), object: new Set<Promise<unknown>>() };
  #isOver = false;
  readonly #stale: (() => Promise<unknown>)[] = [];

  constructor(id: number, variables: Record<string, string>, database: string) {
    this.id = id;
    this.variables = variables;
    this.database = database;
  }

  cell(n: 1 | 2): string {
    return String(this.id * ROOM + n);
  }

  /** The object's name in workerd. */
  physical(name: string): string {
    const shard = /^shard-(\d+)$/.exec(name)?.[1];
    if (name === "directory") return `directory-${this.id}`;
    return shard === undefined ? name : `shard-${this.id * ROOM + Number(shard)}`;
  }

  /** From here on, calls are recorded and faults happen. */
  begin(faults: ArmedFault[]): void {
    this.journal = new Journal();
    this.faults = faults;
  }

  /** Registers a new instance of an object, or another request to the Worker. */
  born(label: string): number {
    this.doomed.delete(label);
    if (label !== "worker") this.used.add(label);
    this.#generations.set(label, this.generation);
    return this.generation;
  }

  isDead(label: string): boolean {
    return this.doomed.has(label) || (this.#generations.get(label) ?? this.generation) < this.generation;
  }

  /** Sends a call. All calls between objects, to D1 and from the Worker go through here. */
  async send(sending: Sending): Promise<unknown> {
    const { from, to, method } = sending;
    if (this.isDead(from) || (this.#isOver && to === "d1")) return never();
    const record = this.journal.call(`${from} > ${to} ${method}`, to);
    const fault = this.#take(record.label, record.nth, record);
    const carryOut = (): Promise<unknown> => this.#carryOut(sending, record);
    switch (fault?.kind) {
      case "drop":
        if (from === "platform") throw new LostAlarm("the alarm is lost");
        return this.#silence(from);
      case "lose_answer":
        if (from === "platform") await carryOut();
        else void carryOut().catch(() => {});
        return this.#silence(from);
      case "twice": {
        const answer = await carryOut();
        await carryOut().catch(() => {});
        this.#stale.push(carryOut);
        return answer;
      }
      case "late":
        this.#late.push(carryOut);
        return this.#silence(from);
      case "stale":
        this.#stale.push(carryOut);
        return this.#silence(from);
      case "overloaded":
      case "retryable":
        throw Object.assign(new Error(`the object is ${fault.kind}`), { [fault.kind]: true, remote: false });
      case "reset":
        throw reset();
      case "reset_after":
        await carryOut();
        throw reset();
      case "error":
        if (fault.carriedOut) await carryOut();
        throw new Error(`D1_ERROR: ${fault.text}`);
      default:
        return carryOut();
    }
  }

  /** Gives no answer, except to the platform, which learns that an alarm has failed. */
  #silence(from: string): Promise<never> {
    // The callers of the Worker have their own timeouts.
    if (/^(ledger|shard)/.test(from)) this.#waitingUntilMs = Date.now() + this.#patienceMs();
    return from === "platform" ? Promise.reject(new Error("the alarm has not finished")) : never();
  }

  async #carryOut({ to, deliver }: Sending, record: CallRecord): Promise<unknown> {
    try {
      record.open = true;
      const answer = await this.#noting(to === "d1" ? "d1" : "object", deliver());
      if (to === "d1" && isD1Write(record.label)) return this.#wroteToD1(record, answer);
      // If the receiver crashed, the caller gets an error, never an answer.
      if (this.isDead(to)) throw reset();
      return answer;
    } finally {
      record.open = false;
    }
  }

  /** A write to D1. At this write only the Worker and all objects together can die. */
  #wroteToD1(record: CallRecord, answer: unknown): unknown {
    const write = { label: writeLabel(record.label), nth: record.nth };
    this.journal.writes.push({ ...write, points: [], call: record });
    if (this.#take(write.label, write.nth) === undefined) return answer;
    this.generation += 1;
    return never();
  }

  /** Returns the fault of a write that is about to be made. `done` must be called when it was made. */
  writing(
    object: string,
    points: readonly WritePoint[],
  ): { fault: WriteFault | undefined; done: () => void } {
    const label = `${object}.${points.join("+")}`;
    const nth = this.journal.count(label);
    const fault = this.#take(label, nth)?.kind as WriteFault | undefined;
    const { journal } = this;
    return {
      fault,
      done: () => void journal.writes.push({ label, nth, points, call: journal.caller(object, points) }),
    };
  }

  #take(label: string, nth: number, call?: CallRecord): Fault | undefined {
    const armed = this.faults.find(
      ({ at, after, fired }) => !fired && after?.fired !== false && isAt(at, label, nth),
    );
    if (armed === undefined) return undefined;
    armed.fired = true;
    armed.call = call;
    return armed.fault;
  }

  /** Longer than any object waits for an answer. */
  #patienceMs(): number {
    return (
      Number(this.variables["LEASEHOLD_EXCHANGE_TIMEOUT_MS"]) +
      Number(this.variables["LEASEHOLD_INQUIRY_TIMEOUT_MS"])
    );
  }

  async #noting<T>(receiver: "d1" | "object", call: Promise<T>): Promise<T> {
    const calls = this.#calls[receiver];
    calls.add(call);
    try {
      return await call;
    } finally {
      calls.delete(call);
    }
  }

  /** Waits for the calls that objects make in the background, such as the deliveries of a decision. */
  async delivered(): Promise<void> {
    // A call of a dead object never ends.
    const giveUpMs = Date.now() + this.#patienceMs();
    do {
      await this.quiet();
      // An object that has its answer may make another call.
      await new Promise((resume) => setTimeout(resume, 1));
    } while (this.#calls.object.size > 0 && Date.now() < giveUpMs);
  }

  /** Keeps what still runs in the background from writing to D1, which the next scenario uses. */
  async end(): Promise<void> {
    this.#isOver = true;
    await Promise.allSettled(this.#calls.d1);
  }

  /** Waits until no object waits for a lost answer. Until then, the sender of a message does not retry. */
  async quiet(): Promise<void> {
    const leftMs = this.#waitingUntilMs - Date.now();
    if (leftMs > 0) await new Promise((resume) => setTimeout(resume, leftMs));
  }

  /** Delivers late messages, now that their senders have given up. */
  async deliverLate(): Promise<void> {
    if (this.#late.length > 0) await this.quiet();
    for (const deliver of this.#late.splice(0)) await deliver().catch(() => {});
  }

  /** Delivers stale messages, after everything else. */
  async deliverStale(): Promise<void> {
    for (const deliver of this.#stale.splice(0)) await deliver().catch(() => {});
  }
}

const reset = (): Error =>
  Object.assign(new Error("the object was reset"), { durableObjectReset: true, remote: true });
