/**
 * Deployments for tests, any number of them inside one workerd. Each has objects of its own, whose numbers begin with the number of the deployment:
 * `cell-121` and `shard-120` are the ledger of the first cell and the first shard of deployment 12. Objects and tests share one isolate, so a deployment
 * is a plain object that both reach by its number.
 */
import {
  isAt,
  Journal,
  type ArmedFault,
  type CallRecord,
  type Fault,
  type WriteFault,
} from "./armed-fault.ts";
import type { WritePoint } from "../../../src/core/write-points.ts";
import { isD1Write, writeLabel } from "./d1-names.ts";

/** Ids of cells and numbers of shards in one deployment. */
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

/** What the platform and the wrapper call an object: `physical` is unique in workerd, `label` is short and the same in every deployment. */
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

/** The platform has forgotten an alarm: it never rings. */
export class LostAlarm extends Error {}

/** Everything that a dead instance still tries ends here. */
export const never = (): Promise<never> => new Promise(() => {});

/** A call on its way: from whom, to whom, and how to carry it out, any number of times. */
export interface Sending {
  from: string;
  to: string;
  method: string;
  deliver: () => Promise<unknown>;
}

export class TestDeployment {
  readonly id: number;
  /** Limits and other variables of this deployment. */
  readonly variables: Record<string, string>;
  /** The binding of its D1. */
  readonly database: string;
  journal = new Journal();
  /** Nothing goes wrong, and nothing is counted, before the scenario begins. */
  faults: ArmedFault[] = [];
  /** How far the objects' clocks are ahead of the real one. */
  skewMs = 0;
  /** Instances of an earlier one are dead. */
  generation = 0;
  /** Objects whose instance is about to die. */
  readonly doomed = new Set<string>();
  /** Objects that were ever used. */
  readonly used = new Set<string>();
  /** When the last object that waits for an answer in vain has given up. */
  #waitingUntilMs = 0;
  readonly #generations = new Map<string, number>();
  readonly #late: (() => Promise<unknown>)[] = [];
  readonly #stale: (() => Promise<unknown>)[] = [];

  constructor(id: number, variables: Record<string, string>, database: string) {
    this.id = id;
    this.variables = variables;
    this.database = database;
  }

  cell(n: 1 | 2): string {
    return String(this.id * ROOM + n);
  }

  /** The name that workerd knows it by. */
  physical(name: string): string {
    const shard = /^shard-(\d+)$/.exec(name)?.[1];
    if (name === "directory") return `directory-${this.id}`;
    return shard === undefined ? name : `shard-${this.id * ROOM + Number(shard)}`;
  }

  /** From here on things are recorded, and go wrong. */
  begin(faults: ArmedFault[]): void {
    this.journal = new Journal();
    this.faults = faults;
  }

  /** A new instance of an object, or another request to the Worker. */
  born(label: string): number {
    this.doomed.delete(label);
    if (label !== "worker") this.used.add(label);
    this.#generations.set(label, this.generation);
    return this.generation;
  }

  isDead(label: string): boolean {
    return this.doomed.has(label) || (this.#generations.get(label) ?? this.generation) < this.generation;
  }

  /** The only way from one object to another, to one from the Worker, and to D1. */
  async send(sending: Sending): Promise<unknown> {
    const { from, to, method } = sending;
    if (this.isDead(from)) return never();
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

  /** No answer. The platform is not left waiting: it knows that an alarm has not come to its end. */
  #silence(from: string): Promise<never> {
    // The Worker's callers wait themselves.
    if (/^(ledger|shard)/.test(from)) this.#waitingUntilMs = Date.now() + this.#patienceMs();
    return from === "platform" ? Promise.reject(new Error("the alarm has not come to its end")) : never();
  }

  async #carryOut({ to, deliver }: Sending, record: CallRecord): Promise<unknown> {
    try {
      record.open = true;
      const answer = await deliver();
      if (to === "d1" && isD1Write(record.label)) return this.#wroteToD1(record, answer);
      // A crash is an error of the caller, never an answer.
      if (this.isDead(to)) throw reset();
      return answer;
    } finally {
      record.open = false;
    }
  }

  /** The one write that is not an object's: only the Worker and all objects can die there. */
  #wroteToD1(record: CallRecord, answer: unknown): unknown {
    const write = { label: writeLabel(record.label), nth: record.nth };
    this.journal.writes.push({ ...write, points: [], call: record });
    if (this.#take(write.label, write.nth) === undefined) return answer;
    this.generation += 1;
    return never();
  }

  /** Says what is to happen to a write that is about to be made. `done` is called when it was made. */
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
      done: () => void journal.writes.push({ label, nth, points, call: journal.caller(object) }),
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

  /** No object waits for anything longer. */
  #patienceMs(): number {
    return (
      Number(this.variables["LEASEHOLD_EXCHANGE_TIMEOUT_MS"]) +
      Number(this.variables["LEASEHOLD_INQUIRY_TIMEOUT_MS"])
    );
  }

  /** Until nobody waits in vain any more: while a message is under way, its sender does nothing about it. */
  async quiet(): Promise<void> {
    const leftMs = this.#waitingUntilMs - Date.now();
    if (leftMs > 0) await new Promise((resume) => setTimeout(resume, leftMs));
  }

  /** What was delayed arrives, now that its sender has given up. */
  async deliverLate(): Promise<void> {
    if (this.#late.length > 0) await this.quiet();
    for (const deliver of this.#late.splice(0)) await deliver().catch(() => {});
  }

  /** What arrives after everything else. */
  async deliverStale(): Promise<void> {
    for (const deliver of this.#stale.splice(0)) await deliver().catch(() => {});
  }
}

const reset = (): Error =>
  Object.assign(new Error("the object was reset"), { durableObjectReset: true, remote: true });
