import type { Api, CellName, Received, Sent } from "./api.ts";
import type { Deployment } from "./deployment.ts";
import type { LeaseRegistry } from "./lease-registry.ts";
import { expectFields, expectStatus } from "./nonconformity.ts";
import type { Random } from "./random.ts";

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
