/** The steps of the scenarios. Each repeats its call, as a careful caller does, until its answer is clear. */
import type { Result } from "../../../src/coordinator/kernel/refusal.ts";
import type { ExchangeAnswer, OperatorCall, Envelope } from "../../../src/coordinator/kernel/messages.ts";
import { placementOf, shardOf } from "../../../src/coordinator/kernel/placement.ts";
import type { TypesDocument } from "../../../src/common/types/document.ts";
import { UNFINISHED } from "../../support/leases.ts";
import { bucketType } from "../../support/types.ts";
import { operator, opsOf, STAMP } from "../../support/ops.ts";
import { Client, type Received } from "./client.ts";
import { ring, rowsOf, stubOf } from "./objects.ts";
import type { TestDeployment } from "./test-deployment.ts";

export const SHARDS = 2;
/** Longer than any pause between two retries. */
const LONG_MS = 130_000;
/** After this many attempts without a clear answer the scenario is repeated with longer timeouts. */
const MAX_TRIES = 8;
/** After this many rounds of alarms a decision that is not applied is lost, or timeouts are too short. */
const MAX_ROUNDS = 8;

/** A call never had a clear answer, because of a defect or of a machine that is too slow for the timeouts. */
export class UnclearError extends Error {}

export type Cell = 1 | 2;
export type Outcome = "commit" | "rollback";

export interface Batch {
  /** The bucket type of all names. ROUTES by default. */
  type?: string;
  create?: string[];
  destroy?: string[];
  replace?: string[];
}

/** What the answers said about a lease. Later state must never contradict it. */
export interface Known {
  uuid: string;
  cell: Cell;
  batch: Batch;
  /** The acknowledged states, in order. */
  states: string[];
}

type Expected = { status: number; reason?: string; code?: string };

/** Whether the answer is unclear, so that the call is repeated. */
const isUnclear = ({ status, json }: Received): boolean =>
  [0, 429, 503, 504].includes(status) || json.code === "ABORTED";

const RESTORE = "01936f6e-2c1a-7c3e-9d56-3a1f0c9b7e42";

/** The UUID of the only verification run. */
const SLOT_UUID = "6f1c2a54-51c3-4f5e-9a0e-2f2d8f0a7b11";

export class Stage {
  readonly deployment: TestDeployment;
  readonly client: Client;
  readonly leases = new Map<string, Known>();
  /** The minted keys, and whether their revocation was acknowledged. */
  readonly keys = new Map<string, { id: string; key: string; cell: Cell; isRevoked: boolean }>();
  /** The bucket types that were declared, with their numbers. */
  readonly types = new Map<string, number>();
  /** The names of the issuers whose tokens are accepted. */
  readonly issuers = new Set<string>();
  /** The cells that the directory must list, with their names. */
  readonly cells = new Map<string, string>();
  /** The cells that were removed. Their leases and claims are those of the removal. */
  readonly removed = new Set<Cell>();
  readonly #exports = new Map<Cell, object[]>();
  readonly envelope: OperatorCall = {
    ...STAMP,
    placement: placementOf(SHARDS),
    operator,
  };

  constructor(deployment: TestDeployment) {
    this.deployment = deployment;
    this.client = new Client(deployment);
  }

  /** Repeats a call until its answer is expected. Any other clear answer fails the test. */
  async until(what: string, expected: Expected[], call: () => Promise<Received>): Promise<Received> {
    const seen: string[] = [];
    for (let tries = 0; tries < MAX_TRIES; tries += 1) {
      const answer = await call();
      await this.deployment.deliverLate();
      if (expected.some((one) => fits(answer, one))) return answer;
      seen.push(`${answer.status} ${answer.json.reason ?? answer.json.code ?? ""}`);
      if (!isUnclear(answer)) throw new Error(`${what} was answered with ${seen.join(", ")}`);
      // The first retry comes at once, before anything can recover.
      if (tries > 0) await this.recover();
    }
    throw new UnclearError(`${what} was answered with ${seen.join(", ")}`);
  }

  async addCell(cell: Cell, name = `Cell ${cell}`): Promise<void> {
    const id = this.deployment.cell(cell);
    const body = { cell_id: id, name, address: `https://cell-${cell}.example` };
    // If the first answer was lost, the second one says that the cell exists.
    await this.until("adding a cell", [{ status: 201 }, { status: 409, reason: "CELL_EXISTS" }], () =>
      this.client.send("POST", "/v1/admin/cells", { body }),
    );
    this.cells.set(id, name);
  }

  async renameCell(cell: Cell, name: string): Promise<void> {
    const id = this.deployment.cell(cell);
    await this.until("renaming a cell", [{ status: 200 }], () =>
      this.client.send("PATCH", `/v1/admin/cells/${id}`, { body: { name } }),
    );
    this.cells.set(id, name);
  }

  /** Adds a bucket type to the set. If the first answer was lost, the second change finds nothing to do. */
  async declareType(name: string, number: number): Promise<void> {
    const { json } = await this.until("reading the types", [{ status: 200 }], () =>
      this.client.send("GET", "/v1/admin/types"),
    );
    const { version, types } = json as unknown as { version: number; types: TypesDocument };
    const body = {
      version,
      types: { ...types, bucket_types: { ...types.bucket_types, [name]: { number } } },
    };
    await this.until("declaring a type", [{ status: 200 }], () =>
      this.client.send("PUT", "/v1/admin/types", { body }),
    );
    this.types.set(name, number);
  }

  /** Accepts the tokens of an issuer. If the first answer was lost, the second change finds nothing to do. */
  async acceptTokens(issuer: string): Promise<void> {
    const { json } = await this.until("reading the identities", [{ status: 200 }], () =>
      this.client.send("GET", "/v1/admin/identities"),
    );
    const { version } = json as unknown as { version: number };
    const cell = this.deployment.cell(1);
    const accepted = {
      name: issuer,
      issuer: `https://${issuer}.example`,
      audience: "leasehold",
      algorithms: ["RS256"],
      jwks_url: `https://${issuer}.example/keys`,
      rules: [{ claims: { sub: "deployer" }, role: "cell", cell_id: cell }],
    };
    const body = { version, issuers: [accepted], authorities: [] };
    await this.until("changing the identities", [{ status: 200 }], () =>
      this.client.send("PUT", "/v1/admin/identities", { body }),
    );
    this.issuers.add(issuer);
  }

  /** Registers a lease in the test without beginning it. */
  lease(name: string, cell: Cell = 1, batch: Batch = {}): Known {
    const known = this.leases.get(name) ?? { uuid: crypto.randomUUID(), cell, batch, states: [] };
    this.leases.set(name, known);
    return known;
  }

  async begin(
    name: string,
    cell: Cell,
    batch: Batch,
    expected: Expected[] = [{ status: 201 }, { status: 200 }],
    key?: string,
  ): Promise<Received> {
    const known = this.lease(name, cell, batch);
    const id = this.deployment.cell(cell);
    return this.until(`the begin of ${name}`, expected, () =>
      this.#observed(
        known,
        this.client.send("PUT", `/v1/cells/${id}/leases/${known.uuid}`, {
          key: key ?? `cell ${id}`,
          body: bodyOf(batch),
        }),
      ),
    );
  }

  /** Decides a lease, and waits for the shards, which learn of it after the answer (C3). */
  async decide(name: string, outcome: Outcome, expected: Expected[] = [{ status: 200 }]): Promise<Received> {
    const known = this.lease(name);
    const id = this.deployment.cell(known.cell);
    const answer = await this.until(`the ${outcome} of ${name}`, expected, () =>
      this.#observed(
        known,
        this.client.send("POST", `/v1/cells/${id}/leases/${known.uuid}/${outcome}`, { key: `cell ${id}` }),
      ),
    );
    await this.deployment.delivered();
    return answer;
  }

  async renew(name: string): Promise<void> {
    const known = this.lease(name);
    const id = this.deployment.cell(known.cell);
    const path = `/v1/cells/${id}/leases/${known.uuid}`;
    const key = `cell ${id}`;
    await this.until(`the renewal of ${name}`, [{ status: 200 }], () =>
      this.client.send("POST", `${path}/renew`, { key, body: { reason: "an import" } }),
    );
    const { json } = await this.until("reading the lease", [{ status: 200 }], () =>
      this.client.send("GET", path, { key }),
    );
    const { lease } = json as { lease?: { renewal_reason?: string } };
    if (lease?.renewal_reason !== "an import") throw new Error("the renewal was answered, but is not stored");
  }

  /** Begins and commits a lease. */
  async own(name: string, cell: Cell, create: string[]): Promise<void> {
    await this.begin(name, cell, { create });
    await this.decide(name, "commit");
  }

  async #observed(known: Known, work: Promise<Received>): Promise<Received> {
    const answer = await work;
    if (answer.json.lease !== undefined) known.states.push(answer.json.lease.state);
    return answer;
  }

  /** Looks up a name. */
  async lookup(value: string, expected: Expected[]): Promise<Received> {
    return this.until(`the lookup of ${value}`, expected, () =>
      this.client.send("GET", `/v1/records/ROUTES/${value}`, { key: "router" }),
    );
  }

  async mintKey(name: string, cell: Cell): Promise<void> {
    const body = { role: "cell", cell_id: this.deployment.cell(cell), note: name };
    const { json } = await this.until("minting a key", [{ status: 201 }], () =>
      this.client.send("POST", "/v1/admin/keys", { body }),
    );
    this.keys.set(name, { id: String(json["id"]), key: String(json["key"]), cell, isRevoked: false });
  }

  async revokeKey(name: string): Promise<void> {
    const known = this.keys.get(name);
    if (known === undefined) throw new Error(`there is no key ${name}`);
    await this.until("revoking a key", [{ status: 200 }], () =>
      this.client.send("POST", `/v1/admin/keys/${known.id}/revoke`),
    );
    known.isRevoked = true;
  }

  /** Begins a restore. A repeated call changes nothing. */
  async startRestore(): Promise<void> {
    const body = { id: RESTORE, kind: "restore", reason: "region lost" };
    await this.until("starting a restore", [{ status: 200 }], () =>
      this.client.send("POST", "/v1/admin/operations", { body }),
    );
    await this.#expectOperations([RESTORE]);
  }

  async endRestore(): Promise<void> {
    await this.until("ending a restore", [{ status: 200 }], () =>
      this.client.send("POST", `/v1/admin/operations/${RESTORE}/end`, { body: { reason: "restored" } }),
    );
    await this.#expectOperations([]);
  }

  async #expectOperations(ids: string[]): Promise<void> {
    const { json } = await this.until("reading the operations", [{ status: 200 }], () =>
      this.client.send("GET", "/v1/admin/operations"),
    );
    const running = (json as unknown as { operations: { id: string }[] }).operations.map(({ id }) => id);
    if (running.join() !== ids.join()) throw new Error(`${running.join()} runs instead of ${ids.join()}`);
  }

  async takeSlot(cell: Cell): Promise<void> {
    await this.until("taking a slot", [{ status: 200 }], () => this.#slot("PUT", cell));
  }

  /** If the first answer was lost, the second one says that the slot is not taken. */
  async releaseSlot(cell: Cell): Promise<void> {
    await this.until("releasing a slot", [{ status: 200 }], () => this.#slot("POST", cell, "/release"));
  }

  /** If the first answer was lost, the repeated report may come too early, and then it was stored. */
  async reportStatus(cell: Cell): Promise<void> {
    const id = this.deployment.cell(cell);
    const path = `/v1/cells/${id}/status`;
    await this.until("reporting", [{ status: 200 }, { status: 429, reason: "STATUS_TOO_EARLY" }], () =>
      this.client.send("PUT", path, {
        key: `cell ${id}`,
        body: { sdk: { name: "leasehold", version: "0.1.0" } },
      }),
    );
    const { json } = await this.until("reading the status", [{ status: 200 }], () =>
      this.client.send("GET", path, { key: `cell ${id}` }),
    );
    const { status } = json as { status?: { sdk: { version: string } } | null };
    if (status?.sdk.version !== "0.1.0") throw new Error("the status was answered, but is not stored");
  }

  /** Erases what has ended of a name. A repeated call finds nothing to do. Checks that nothing is left. */
  async eraseHistory(value: string): Promise<void> {
    const body = { bucket: { type: "ROUTES", value }, reason: "a test", dry_run: false };
    await this.until("erasing a history", [{ status: 200 }], () =>
      this.client.send("POST", "/v1/admin/history/erase", { body }),
    );
    const { json } = await this.until("reading a history", [{ status: 200 }], () =>
      this.client.send("GET", `/v1/admin/history/ROUTES/${value}`),
    );
    const { periods } = json as unknown as { periods: { until: string | null }[] };
    if (periods.some(({ until }) => until !== null))
      throw new Error("the erasure was answered, but the periods are still there");
  }

  /** Scrubs a part from its first row, and checks that the pass is stored. */
  async scrub(part: string): Promise<void> {
    const path = `/v1/admin/parts/${part}/scrub`;
    await this.until("scrubbing", [{ status: 200 }], () =>
      this.client.send("POST", path, { body: { restart: true } }),
    );
    // A ledger reads its granted leases and its decisions in two steps.
    await this.until("scrubbing on", [{ status: 200 }], () =>
      this.client.send("POST", path, { body: { restart: false } }),
    );
    const { json } = await this.until("reading a scrub", [{ status: 200 }], () =>
      this.client.send("GET", path),
    );
    // The numbers of these shards are none of the placement, so the pass has findings.
    const { last } = json as { last?: object | null };
    if (last == null) throw new Error(`the scrub was answered, but is not stored: ${JSON.stringify(json)}`);
  }

  #slot(method: "PUT" | "POST", cell: Cell, action = ""): Promise<Received> {
    const id = this.deployment.cell(cell);
    return this.client.send(method, `/v1/cells/${id}/verification-slots/${SLOT_UUID}${action}`, {
      key: `cell ${id}`,
    });
  }

  async freeze(cell: Cell, how: "freeze" | "drain" | "unfreeze"): Promise<void> {
    const id = this.deployment.cell(cell);
    await this.until(`the ${how}`, [{ status: 200 }], () =>
      this.client.send("POST", `/v1/admin/cells/${id}/${how}`),
    );
  }

  /** Reads the digest of what a cell has, as an export gives it. */
  async readDigest(cell: Cell): Promise<void> {
    const id = this.deployment.cell(cell);
    const digest = { source_type: "RAILS_TABLE_ROUTES", ranges: [{}] };
    const { json } = await this.until("reading the digest", [{ status: 200 }], () =>
      this.client.send("POST", `/v1/cells/${id}/records/digests`, { body: digest }),
    );
    const [{ count, hash } = { count: 0, hash: "" }] = json["digests"] as { count: number; hash: string }[];
    if (count === 0) throw new Error("the cell has no claims");
    this.#exports.set(cell, [{ source_type: digest.source_type, count, hash }]);
  }

  /** Has the export of a drained cell compared. Repeated, it replaces the approval. */
  async approveRemoval(cell: Cell): Promise<void> {
    const body = { export: this.#exports.get(cell) };
    await this.until("approving a removal", [{ status: 200 }], () =>
      this.client.send("POST", `/v1/admin/cells/${this.deployment.cell(cell)}/removal`, { body }),
    );
  }

  /** Repeats steps until the cell is removed. */
  async removeCell(cell: Cell): Promise<void> {
    const id = this.deployment.cell(cell);
    this.removed.add(cell);
    for (let state = ""; state !== "REMOVED";) {
      const { json } = await this.until("a step of a removal", [{ status: 200 }], () =>
        this.client.send("POST", `/v1/admin/cells/${id}/removal/steps`, { body: { reason: "a test" } }),
      );
      state = String(json["state"]);
      await this.deployment.delivered();
    }
  }

  /** Uses a shard for the first time. */
  async touch(label: string): Promise<void> {
    const stub = stubOf(this.deployment, label) as unknown as { ping(message: Envelope): Promise<unknown> };
    await stub.ping(this.envelope);
  }

  /** Leaves an orphaned hold, as a begin whose ledger dies before the grant. */
  async orphan(cell: Cell, names: string[]): Promise<void> {
    const [newest] = await rowsOf<{ incarnation: number }>(
      this.deployment,
      `ledger${cell}`,
      "SELECT incarnation FROM incarnation ORDER BY incarnation DESC LIMIT 1",
    );
    if (newest === undefined) throw new Error("the ledger has raised no incarnation");
    const holder = {
      cell: this.deployment.cell(cell),
      lease: crypto.randomUUID(),
      incarnation: newest.incarnation,
      counter: 999,
    };
    for (const [shard, ops] of Map.groupBy(opsOf(this.envelope.placement, names), (op) => op.shard)) {
      const stub = stubOf(this.deployment, `shard${shard}`) as unknown as {
        exchange(message: unknown): Promise<Result<ExchangeAnswer>>;
      };
      const answer = await stub.exchange({
        ...this.envelope,
        cell: holder.cell,
        point: { incarnation: newest.incarnation, position: 0 },
        confirmed: null,
        decisions: [],
        prepares: [{ ...holder, ops, allowMissing: false }],
      });
      if (!answer.ok || answer.value.prepares[0]?.granted !== true)
        throw new Error("the shard refused an orphaned hold");
    }
  }

  /** Advances the clocks of all objects, then rings one alarm. */
  async ring(label: string): Promise<void> {
    await this.deployment.quiet();
    this.deployment.skewMs += LONG_MS;
    await ring(this.deployment, label);
    await this.deployment.deliverLate();
  }

  async cron(): Promise<void> {
    await this.client.cron();
    await this.deployment.deliverLate();
  }

  /** Advances the clocks, then rings every alarm. */
  async ringAll(): Promise<void> {
    await this.deployment.quiet();
    this.deployment.skewMs += LONG_MS;
    for (const label of this.#workers()) await ring(this.deployment, label);
  }

  /** Wakes objects that have lost their alarm, as the cron does. They set a new alarm. */
  async poke(): Promise<void> {
    this.deployment.skewMs += LONG_MS;
    for (const label of this.#workers()) {
      const stub = stubOf(this.deployment, label) as unknown as Record<
        "maintain" | "ping",
        (message: object) => Promise<unknown>
      >;
      const method = label.startsWith("ledger") ? "maintain" : "ping";
      const deliver = async (): Promise<unknown> => stub[method]({ ...this.envelope });
      await this.deployment.send({ from: "platform", to: label, method, deliver }).catch(() => {});
    }
  }

  /** The objects that have alarms. */
  #workers(): string[] {
    return [...this.deployment.used].filter((label) => label !== "directory").toSorted();
  }

  /**
   * Repeats alarms until every decision is applied. On a slow machine a message may take longer than its
   * sender waits. Returns whether they are applied.
   */
  async recover(): Promise<boolean> {
    await this.poke();
    // Rings all alarms again, because one object's work creates work for another.
    await this.ringAll();
    for (let round = 0; round < MAX_ROUNDS; round += 1) {
      await this.ringAll();
      if ((await this.#openDecisions()) === 0) return true;
    }
    return false;
  }

  /** The number of decisions that are not applied everywhere. */
  async #openDecisions(): Promise<number> {
    const ledgers = this.#workers().filter((label) => label.startsWith("ledger"));
    const open = ledgers.map((label) =>
      rowsOf(this.deployment, label, `SELECT 1 FROM lease WHERE decided = 1 AND ${UNFINISHED}`),
    );
    return (await Promise.all(open)).flat().length;
  }
}

const fits = ({ status, json }: Received, expected: Expected): boolean =>
  status === expected.status &&
  (expected.reason === undefined || json.reason === expected.reason) &&
  (expected.code === undefined || json.code === expected.code);

function bodyOf({ type = "ROUTES", create = [], destroy = [], replace = [] }: Batch): object {
  const bucketOf = (value: string): object => ({ type, value });
  const claimOf = (subject: string) => (value: string) => ({
    bucket: bucketOf(value),
    subject: { type: "NAMESPACE", id: subject },
    source: { type: "RAILS_TABLE_ROUTES", id: "1" },
  });
  return {
    creates: create.map(claimOf("1")),
    destroys: destroy.map((value) => ({ bucket: bucketOf(value) })),
    replaces: replace.map(claimOf("2")),
  };
}

/** The nth name of a shard. */
export function nameOn(shard: number, nth = 0, type = bucketType("ROUTES")): string {
  for (let n = 0, seen = 0; ; n += 1) {
    if (shardOf(type, `n${n}`, SHARDS) === shard && seen++ === nth) return `n${n}`;
  }
}
