import type { Api, CellName, Received, Sent } from "./api.ts";
import { expectFields, expectStatus } from "./nonconformity.ts";

export interface Op {
  bucket: { type: string; value: string };
  subject?: { type: string; id: string };
  source?: { type: string; id: string };
  epoch?: number;
}

export interface Batch {
  creates?: readonly Op[];
  destroys?: readonly Op[];
  replaces?: readonly Op[];
  allow_missing?: boolean;
}

export interface Lease {
  uuid: string;
  by: CellName;
  received: Received;
}

/** A record as its own cell sees it. Fields may be absent if the implementation is wrong. */
export interface SeenRecord {
  bucket: { type: string; value: string };
  cell_id: string;
  status: string;
  lease_uuid?: string | null;
  subject?: { type: string; id: string };
  source?: { type: string; id: string };
  epoch?: number;
}

interface CheckContextOptions {
  api: Api;
  deployment: Deployment;
  leases: LeaseRegistry;
  /** What all names of the check begin with. */
  prefix: string;
  seed: number;
  random: Random;
  histories: number;
  signal: AbortSignal;
}

/** What a check works with: calls, and names of its own that the run gives up in the end. */
export class CheckContext {
  readonly api: Api;
  readonly deployment: Deployment;
  readonly leases: LeaseRegistry;
  /** Names and source ids of the check begin with it. */
  readonly prefix: string;
  readonly seed: number;
  readonly random: Random;
  /** The number of histories that the linearizability check makes. */
  readonly histories: number;
  readonly signal: AbortSignal;
  #names = 0;

  constructor(options: CheckContextOptions) {
    this.api = options.api;
    this.deployment = options.deployment;
    this.leases = options.leases;
    this.prefix = options.prefix;
    this.seed = options.seed;
    this.random = options.random;
    this.histories = options.histories;
    this.signal = options.signal;
  }

  /** A name that nobody has had. */
  name(): string {
    this.#names += 1;
    return `${this.prefix}${this.#names}`;
  }

  names(count: number): string[] {
    return Array.from({ length: count }, () => this.name());
  }

  cellId(by: CellName = "cell"): string {
    return by === "cell" ? this.deployment.cell : (this.deployment.otherCell ?? "");
  }

  bucket(value: string): Op["bucket"] {
    return { type: this.deployment.types.bucket, value };
  }

  /** An op with subject and source. The source id is the name by default. */
  op(value: string, { subject = "7", source = value, ...more }: OpFields = {}): Op {
    const { types } = this.deployment;
    return {
      bucket: this.bucket(value),
      subject: { type: types.subject, id: subject },
      source: { type: types.source, id: source },
      ...more,
    };
  }

  leasePath(uuid: string, by: CellName = "cell"): string {
    return `/v1/cells/${this.cellId(by)}/leases/${uuid}`;
  }

  send(method: string, path: string, sent?: Sent): Promise<Received> {
    return this.api.send(method, path, sent);
  }

  newUuid(): string {
    return crypto.randomUUID();
  }

  /** Begins a lease, whatever the answer is. */
  async begin(
    batch: Batch,
    { by = "cell", uuid = this.newUuid(), ...sent }: Sent & { by?: CellName; uuid?: string } = {},
  ): Promise<Lease> {
    this.leases.add(uuid, by);
    const received = await this.send("PUT", this.leasePath(uuid, by), { who: by, body: batch, ...sent });
    return { uuid, by, received };
  }

  /** Begins a lease that must be granted. */
  async granted(batch: Batch, by: CellName = "cell", uuid = this.newUuid()): Promise<Lease> {
    const lease = await this.begin(batch, { by, uuid });
    expectStatus(lease.received, ...(lease.received.isRepeated ? [200, 201] : [201]));
    expectFields(lease.received, { lease: { uuid, cell_id: this.cellId(by), state: "GRANTED" } });
    return lease;
  }

  /** Decides a lease, whatever the answer is. */
  async decide(
    { uuid, by }: Pick<Lease, "uuid" | "by">,
    decision: "commit" | "rollback",
    sent: Sent = {},
  ): Promise<Received> {
    const received = await this.send("POST", `${this.leasePath(uuid, by)}/${decision}`, { who: by, ...sent });
    if (received.status === 200) this.leases.decided(uuid, by);
    return received;
  }

  async commit(lease: Pick<Lease, "uuid" | "by">): Promise<Received> {
    const received = await this.decide(lease, "commit");
    expectStatus(received, 200);
    expectFields(received, { lease: { uuid: lease.uuid, state: "COMMITTED" } });
    return received;
  }

  async rollBack(lease: Pick<Lease, "uuid" | "by">): Promise<Received> {
    const received = await this.decide(lease, "rollback");
    expectStatus(received, 200);
    expectFields(received, { lease: { uuid: lease.uuid, state: "ROLLED_BACK" } });
    return received;
  }

  /** Claims names, and makes sure that lookups show them. */
  async own(values: readonly string[], by: CellName = "cell"): Promise<void> {
    await this.commit(await this.granted({ creates: values.map((value) => this.op(value)) }, by));
    for (const value of values) await this.record(value, by);
  }

  lookUp(value: string, who: Sent["who"] = "cell"): Promise<Received> {
    return this.send("GET", `/v1/records/${this.deployment.types.bucket}/${encodeURIComponent(value)}`, {
      who,
    });
  }

  /** The record of a name that must be found. */
  async record(value: string, who: CellName = "cell"): Promise<SeenRecord> {
    const received = await this.lookUp(value, who);
    expectStatus(received, 200);
    expectFields(received, { record: {} });
    return (received.json as { record: SeenRecord }).record;
  }

  /** The name must not be found. */
  async absent(value: string): Promise<void> {
    const received = await this.lookUp(value);
    expectStatus(received, 404);
    expectFields(received, { code: "NOT_FOUND" });
  }
}

interface OpFields {
  subject?: string;
  source?: string;
  epoch?: number;
}

/** What a check needs beside the key of a cell. `wire`: the protobuf wire is to be tested. */
export type Need = "other" | "router" | "operator" | "wire";

/** Shows one thing that rules promise. */
export interface Check {
  /** Says what is checked, such as `begin/replay`. */
  id: string;
  /** Rules of docs/reference/protocol.md. `API`: a convention of docs/reference/http-api.md. */
  rules: readonly string[];
  /** A sentence about what conforms. */
  title: string;
  needs?: readonly Need[];
  /** Its time is for each history, and not for all of them. */
  isPerHistory?: boolean;
  /** @throws {Nonconformity} when the implementation does something else */
  run: (context: CheckContext) => Promise<void>;
}

/** Thrown by a check that finds that it can't tell. The report shows why. */
export class SkipError extends Error {
  override readonly name = "SkipError";
}

interface OpenLease {
  uuid: string;
  by: CellName;
}

/** The leases of a run that may be open. They are recorded before their begin is sent. */
export class LeaseRegistry {
  /** By cell and UUID, because two cells may use the same UUID. */
  readonly #open = new Map<string, OpenLease>();

  add(uuid: string, by: CellName): void {
    this.#open.set(`${by}/${uuid}`, { uuid, by });
  }

  /** The implementation has acknowledged a decision. */
  decided(uuid: string, by: CellName): void {
    this.#open.delete(`${by}/${uuid}`);
  }

  openOf(cell: CellName): string[] {
    return [...this.#open.values()].filter(({ by }) => by === cell).map(({ uuid }) => uuid);
  }
}

/** The types of the names of a run. */
export interface NameTypes {
  bucket: string;
  subject: string;
  source: string;
}

/** What a run knows of the implementation that it tests. */
export interface Deployment {
  cell: string;
  /** Undefined: there is no key of another cell. */
  otherCell: string | undefined;
  types: NameTypes;
}

/** Types that Leasehold ships, which are taken if the deployment has them. */
const preferred: NameTypes = { bucket: "USERNAMES", subject: "USER", source: "RAILS_TABLE_USERS" };

const schemas = { bucket: "BucketType", subject: "SubjectType", source: "SourceType" } as const;

/**
 * Finds types for names. The implementation's OpenAPI document lists those that it has. Types that are given
 * are taken as they are.
 */
export async function typesOf(api: Api, given: Partial<NameTypes>): Promise<NameTypes> {
  const { json } = await api.send("GET", "/openapi.json", { who: "nobody" });
  const declared = (json as OpenApi | undefined)?.components?.schemas;
  const choose = (kind: keyof NameTypes): string => {
    const names = declared?.[schemas[kind]]?.enum ?? [];
    const [first = preferred[kind]] = names;
    return given[kind] ?? (names.includes(preferred[kind]) ? preferred[kind] : first);
  };
  return { bucket: choose("bucket"), subject: choose("subject"), source: choose("source") };
}

interface OpenApi {
  components?: { schemas?: Record<string, { enum?: string[] } | undefined> };
}

/** Random choices that a seed repeats. */
export class Random {
  #state: number;

  /** @param parts the seed, and what else distinguishes this sequence */
  constructor(...parts: readonly (string | number)[]) {
    this.#state = 2_166_136_261;
    for (const char of parts.join("/"))
      this.#state = Math.imul(this.#state ^ (char.codePointAt(0) ?? 0), 16_777_619);
  }

  /** In [0, 1). The generator is mulberry32. */
  next(): number {
    this.#state = (this.#state + 0x6d_2b_79_f5) | 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** A whole number from 0 to `below` - 1. */
  below(below: number): number {
    return Math.floor(this.next() * below);
  }

  pick<T>(items: readonly T[]): T {
    const item = items[this.below(items.length)];
    if (item === undefined) throw new Error("there is nothing to pick from");
    return item;
  }
}
