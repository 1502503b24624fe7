/** The server under test: workerd with its state on disk, and keys of every kind. */
import { randomBytes, randomUUID } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { Agent, request as httpRequest } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Hmac } from "../../../src/coordinator/auth/secrets.ts";
import { makeKey, type KeyPayload } from "../../../src/coordinator/auth/key.ts";
import { isStandalone, SETTLE_MS, startHost, type FuzzedHost } from "./hosts.ts";
import {
  DECIDED,
  MOVED,
  names,
  NAME_MARK,
  OUTSTANDING,
  pools,
  REGISTERED,
  REMOVABLE,
  TRANSFERS,
  RESPELLED,
  UNREGISTERED,
  uuid,
} from "./pools.ts";
import { StateOnDisk } from "./state.ts";

export interface Sent {
  method: string;
  /** Path and query as they are sent. */
  target: string;
  headers: readonly (readonly [string, string])[];
  body?: Uint8Array | undefined;
}

export interface Received {
  status: number;
  headers: Readonly<Record<string, string | string[] | undefined>>;
  text: string;
}

export const goodKeys = ["operator", "router", ...REGISTERED.map((cell) => `cell ${cell}`)];
export const badKeys = [
  "none",
  "expired",
  "of another secret",
  "of another role",
  "too long a life",
  "revoked operator",
  "revoked cell 1",
];
/** Valid keys of cells that are not registered. */
export const orphanKeys = UNREGISTERED.map((cell) => `cell ${cell}`);

/**
 * Low limits, so that a few requests reach them, and long timeouts, so that a slow machine causes none. The
 * limits on ops and on bytes of a body are the defaults.
 */
const VARIABLES = {
  LEASEHOLD_SHARDS: "4",
  LEASEHOLD_MAX_CELLS: "8",
  LEASEHOLD_MAX_REVOKED_KEYS: "12",
  LEASEHOLD_FENCES: "20",
  LEASEHOLD_OUTSTANDING_LEASES: "30",
  // The rows are compared after each answer.
  LEASEHOLD_DECISION_WAIT_MS: "0",
  LEASEHOLD_INQUIRY_TIMEOUT_MS: "30000",
  LEASEHOLD_EXCHANGE_TIMEOUT_MS: "30000",
  LEASEHOLD_BEGIN_DEADLINE_MS: "60000",
  LEASEHOLD_COMMIT_DEADLINE_MS: "60000",
};

/** A request without an answer after this time hangs. It is longer than any deadline of the server. */
export const HANG_MS = 300_000;

const DAY_S = 86_400;

export class FuzzServer {
  readonly url: string;
  readonly port: number;
  readonly secret: string;
  readonly state: StateOnDisk;
  /** Keys by kind. There is none for "none". */
  readonly keys: ReadonlyMap<string, string>;
  readonly logged: string[];
  readonly #coordinator: FuzzedHost;
  readonly #folder: string;
  // One connection, so requests are sent one at a time.
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1 });

  private constructor(
    coordinator: FuzzedHost,
    folder: string,
    secret: string,
    keys: Map<string, string>,
    logged: string[],
  ) {
    this.#coordinator = coordinator;
    this.#folder = folder;
    this.url = coordinator.url;
    this.port = Number(new URL(coordinator.url).port);
    this.secret = secret;
    this.keys = keys;
    this.logged = logged;
    this.state = new StateOnDisk(join(folder, isStandalone ? "databases" : "storage"));
  }

  static async start(): Promise<FuzzServer> {
    const folder = mkdtempSync(join(tmpdir(), "fuzz-"));
    const logged: string[] = [];
    const coordinator = await startHost(folder, VARIABLES, (line) => logged.push(line));
    const secret = readFileSync(join(folder, "signing-secret"), "utf8").trim();
    const { operator, router, cells } = coordinator.keys;
    const keys = new Map<string, string>([
      ["operator", operator],
      ["router", router],
      ...Object.entries(cells).map(cellKey),
    ]);
    for (const [kind, key] of await oddKeys(secret)) keys.set(kind, key);
    const server = new FuzzServer(coordinator, folder, secret, keys, logged);
    await server.#prepareState();
    return server;
  }

  /** Uses every object, revokes the keys that must be revoked, and makes leases and claims in every state. */
  async #prepareState(): Promise<void> {
    for (const [id, body] of [
      [REVOKED_OPERATOR, {}],
      [REVOKED_CELL, { cell_id: "1" }],
    ] as const) {
      await this.#must(200, "POST", `/v1/admin/keys/${id}/revoke`, body);
    }
    await this.#must(200, "GET", "/readyz");
    for (const [index, cell] of REGISTERED.entries()) {
      const owned = `/v1/cells/${cell}/leases/${uuid(DECIDED + index)}`;
      await this.#must(201, "PUT", owned, {
        creates: [0, 1].map((n) => claimOf(names[2 * index + n] ?? "", n)),
      });
      await this.#must(200, "POST", `${owned}/commit`, { reason: "initial state" });
      await this.#must(201, "PUT", `/v1/cells/${cell}/leases/${uuid(OUTSTANDING + index)}`, {
        destroys: [{ bucket: claimOf(names[2 * index] ?? "", 0).bucket }],
      });
    }
    await this.#must(201, "PUT", `/v1/cells/1/leases/${uuid(15)}`, {
      creates: names.slice(8, 9).map(claimOf),
    });
    const respelled = `/v1/cells/1/leases/${uuid(RESPELLING)}`;
    await this.#must(201, "PUT", respelled, { replaces: [claimOf(RESPELLED.toUpperCase(), 1)] });
    await this.#must(200, "POST", `${respelled}/commit`, { reason: "initial state" });
    for (const [call, cell] of Object.entries(REMOVABLE)) await this.#prepareRemoval(cell, call);
    for (const [index, cell] of REGISTERED.entries()) await this.#claimScope(cell, MOVED, SCOPED + index);
    for (const [index, id] of [...new Set(Object.values(TRANSFERS))].entries())
      await this.#prepareTransfer(id, SCOPED + REGISTERED.length + index);
    await this.#coordinator.cron();
    // Finds the file of D1.
    this.state.changes();
    for (const id of pools["id"] ?? []) this.#insertWebhook(id);
    this.failCopies();
  }

  /**
   * Inserts an endpoint with two messages, because the ids of those that are added are random. Its address
   * may not be used, so nothing is sent.
   */
  #insertWebhook(id: string): void {
    this.state.insert("webhooks", {
      webhook_id: id,
      url: "http://hooks.invalid/",
      events: '["history_lost"]',
      thresholds: "{}",
      for_s: 0,
      resolve_s: 0,
      is_enabled: 0,
      version: id,
      created_at_ms: 1,
      updated_at_ms: 1,
    });
    for (const number of [1, 2])
      this.state.insert("webhook_deliveries", {
        message_id: `${id} ${number}`,
        webhook_id: id,
        event: "history_lost",
        status: "firing",
        subject: "shard-0",
        body: "{}",
        state: "delivered",
        created_at_ms: number,
        due_at_ms: number,
      });
  }

  /** Registers a cell and drains it. For steps, its removal is approved. */
  async #prepareRemoval(cell: string, call: string): Promise<void> {
    const added = { cell_id: cell, name: "to be removed", address: "https://removed.example" };
    await this.#must(201, "POST", "/v1/admin/cells", added);
    await this.#must(200, "POST", `/v1/admin/cells/${cell}/drain`, {});
    if (call === "approveRemoval") return;
    await this.#must(200, "POST", `/v1/admin/cells/${cell}/removal`, { export: [] });
  }

  /** Gives a cell a claim that has a scope. No request names the claim. */
  async #claimScope(cell: string, scope: string, number: number): Promise<void> {
    const lease = `/v1/cells/${cell}/leases/${uuid(number)}`;
    const claim = claimOf(`${NAME_MARK}-scoped-${number}`, number);
    await this.#must(201, "PUT", lease, { creates: [{ ...claim, scope }] });
    await this.#must(200, "POST", `${lease}/commit`, { reason: "initial state" });
  }

  /** Prepares a transfer of one claim, and everything that a cut needs if it is for one. */
  async #prepareTransfer(id: string, number: number): Promise<void> {
    const reason = "initial state";
    const made = { uuid: id, from: "1", to: "2", scope: `fz-${id}`, reason };
    await this.#claimScope(made.from, made.scope, number);
    const { text } = await this.#must(200, "POST", "/v1/transfers", made);
    if (id !== TRANSFERS.cutTransfer) return;
    await this.#must(200, "POST", `/v1/transfers/2-${id}/accept`, { reason });
    const { transfer } = JSON.parse(text) as { transfer: { expected: Record<string, object> } };
    for (const [side, rows] of Object.entries(transfer.expected))
      await this.#must(200, "POST", `/v1/transfers/2-${id}/report`, { side, ...rows, reason });
  }

  /** Notes that the cron could not copy the cells, which no request brings about. Its next run forgets it. */
  failCopies(): void {
    for (const cell of REGISTERED)
      this.state.execute("UPDATE cells SET last_error = 'down' WHERE cell_id = ?", cell);
  }

  async #must(status: number, method: string, target: string, body?: unknown): Promise<Received> {
    const headers: [string, string][] = [["authorization", `Bearer ${this.keys.get("operator")}`]];
    if (body !== undefined) headers.push(["content-type", "application/json"]);
    const received = await this.send({
      method,
      target,
      headers,
      body: body === undefined ? undefined : Buffer.from(JSON.stringify(body)),
    });
    if (received.status !== status)
      throw new Error(`${method} ${target} answered ${received.status}: ${received.text}`);
    return received;
  }

  /**
   * Over a real socket. Not with `fetch`, which tidies paths up, joins headers and refuses bodies where it
   * does not expect them. `raw-connection.ts` sends what this cannot.
   */
  send({ method, target, headers, body }: Sent): Promise<Received> {
    return new Promise((resolve, reject) => {
      const given: Record<string, string[]> = {};
      for (const [name, value] of headers) (given[name] ??= []).push(value);
      if (body !== undefined && given["content-length"] === undefined)
        given["content-length"] = [String(body.length)];
      const sending = httpRequest({
        agent: this.#agent,
        host: "127.0.0.1",
        port: this.port,
        method,
        path: target,
        headers: given,
      });
      const hang = setTimeout(() => {
        reject(new Error(`no answer in ${HANG_MS} ms`));
        sending.destroy();
      }, HANG_MS);
      sending.on("response", (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.on("error", reject);
        response.on("end", () => {
          clearTimeout(hang);
          setTimeout(
            () =>
              resolve({
                status: response.statusCode ?? 0,
                headers: response.headers,
                text: Buffer.concat(chunks).toString("utf8"),
              }),
            SETTLE_MS,
          );
        });
      });
      sending.on("error", (error) => {
        clearTimeout(hang);
        reject(error);
      });
      sending.end(body);
    });
  }

  async stop(): Promise<void> {
    this.#agent.destroy();
    this.state.close();
    await this.#coordinator.stop();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

/** The number of a UUID that no request names. */
const RESPELLING = 30;
/** The first number of such UUIDs, of leases that give a cell a claim with a scope. */
const SCOPED = 50;

const claimOf = (value: string, n: number): { bucket: object; subject: object; source: object } => ({
  bucket: { type: "ROUTES", value },
  subject: { type: "USER", id: n },
  source: { type: "RAILS_TABLE_USERS", id: n },
});

const cellKey = ([cell, key]: [string, string]): [string, string] => [`cell ${cell}`, key];

const REVOKED_OPERATOR = randomUUID();
const REVOKED_CELL = randomUUID();

async function oddKeys(secret: string): Promise<[string, string][]> {
  const hmac = new Hmac(secret);
  const other = new Hmac(randomBytes(32).toString("base64url"));
  const now = Math.floor(Date.now() / 1_000);
  const payload: KeyPayload = { v: 1, id: randomUUID(), role: "operator", iat: now, exp: now + DAY_S };
  const cell = (of: string, id: string = randomUUID()): KeyPayload => ({
    ...payload,
    id,
    role: "cell",
    cell: of,
  });
  const made: [string, Promise<string>][] = [
    ["expired", makeKey({ ...payload, iat: now - DAY_S, exp: now - 1 }, hmac)],
    ["of another secret", makeKey(payload, other)],
    ["of another role", makeKey({ ...payload, role: "admin" as "operator" }, hmac)],
    ["too long a life", makeKey({ ...payload, exp: now + 500 * DAY_S }, hmac)],
    ["revoked operator", makeKey({ ...payload, id: REVOKED_OPERATOR }, hmac)],
    ["revoked cell 1", makeKey(cell("1", REVOKED_CELL), hmac)],
    ...UNREGISTERED.map((id): [string, Promise<string>] => [`cell ${id}`, makeKey(cell(id), hmac)]),
  ];
  return Promise.all(made.map(async ([kind, key]): Promise<[string, string]> => [kind, await key]));
}
