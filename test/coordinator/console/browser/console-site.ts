/** The console with a state worth looking at, behind the HTTP server of `npm run standalone`. */
import { randomBytes } from "node:crypto";
import { createClient, type Client } from "../../../../src/users/client/index.ts";
import { configOf } from "../../../../src/coordinator/env.ts";
import { Host } from "../../../../src/hosts/node/host.ts";
import { MemoryStore } from "../../../../src/hosts/node/object-store.ts";
import { SqliteDatabase } from "../../../../src/hosts/node/sqlite-database.ts";
import { HttpServer } from "../../../../src/hosts/standalone/http-server.ts";
import { TestClock } from "../../../../src/users/testing/clock.ts";
import { makeKeys } from "../../../../src/users/testing/coordinator.ts";
import type { TestKeys } from "../../../../src/users/testing/index.ts";

const HOUR_MS = 3_600_000;

/** A name that tries to leave its element. */
export const HOSTILE_NAME = `"><script>alert(1)</script>`;
/** Names can't turn the direction of the text, but what people write can. */
export const HOSTILE = `${HOSTILE_NAME}\u202Egnp`;
const RTL = "שלום-עולם";
/** As long as a name can be. */
export const LONG = "a".repeat(255);

const CELLS = [
  ["1", "Europe 1"],
  ["2", "America 1"],
  ["3", HOSTILE],
  ["4", RTL],
  ["5", "An idle cell with a name that is rather long, as people give them"],
] as const;

let ids = 0;

const create = (value: string) => ({
  bucket: { type: "USERNAMES" as const, value },
  subject: { type: "USER" as const, id: String((ids += 1)) },
  source: { type: "RAILS_TABLE_USERS" as const, id: String(ids) },
});

export class ConsoleSite {
  readonly url: string;
  readonly keys: TestKeys;
  readonly #host: Host;
  readonly #clock: TestClock;
  readonly #http: HttpServer;

  private constructor(host: Host, clock: TestClock, http: HttpServer, keys: TestKeys) {
    this.#host = host;
    this.#clock = clock;
    this.#http = http;
    this.keys = keys;
    this.url = http.url.replace("127.0.0.1", "localhost");
  }

  static async start(): Promise<ConsoleSite> {
    const clock = new TestClock();
    const secret = randomBytes(32).toString("hex");
    const host = new Host({
      clock,
      log: () => {},
      variables: { LEASEHOLD_SHARDS: "4", LEASEHOLD_SIGNING_SECRET: secret },
      store: () => new MemoryStore(),
      d1: new SqliteDatabase(),
    });
    const { limits } = configOf(host.env);
    const cells = CELLS.map(([id]) => id);
    const keys = await makeKeys(secret, cells, clock.now(), limits.keyLifetimeS);
    const http = await HttpServer.listen(host, {
      host: "127.0.0.1",
      port: 0,
      bodyReadMs: limits.bodyReadMs,
    });
    return new ConsoleSite(host, clock, http, keys);
  }

  client(cell?: string): Client {
    return createClient({
      url: this.url,
      key: cell === undefined ? this.keys.operator : this.keys.cell(cell),
      cell,
      fetch: (url, init) => this.#host.dispatch(new Request(url, init)),
    });
  }

  begin(cell: string, ...names: string[]): Promise<string> {
    return this.client(cell)
      .leases.begin({ creates: names.map(create) })
      .then(({ uuid }) => uuid);
  }

  /** A prepared transfer of a scope, with one name, from cell 1 to cell 2. */
  async transfer(scope: string, reason: string): Promise<string> {
    const { leases, records } = this.client("1");
    const op = { ...create("a-name-that-moves"), scope };
    await leases.commit((await leases.begin({ creates: [op] })).uuid);
    // Once the name is looked up, its hold is cleared.
    await records.lookup([op.bucket]);
    const { id } = await this.client().transfers.prepare({ from: "1", to: "2", scope }, { reason });
    return id;
  }

  async advance(ms: number): Promise<void> {
    await this.#clock.advance(ms, () => this.#host.untilIdle());
  }

  async cron(): Promise<void> {
    const { error } = await this.#host.cron();
    if (error !== null) throw new Error(error);
  }

  /** Names, leases, reports and audit entries, some of them days old. Returns a key and a webhook. */
  async fill(): Promise<{ viewer: string; webhook: string }> {
    const operator = this.client();
    for (const [id, name] of CELLS)
      await operator.cells.add({ cell_id: id, name, address: `https://cell-${id}.example.com` });
    await this.#moveName("ada");
    for (const name of [HOSTILE_NAME, RTL, LONG])
      await this.client("1").leases.commit(await this.begin("1", name));
    await this.begin("2", "grace", "grace-hopper");
    await this.advance(30 * HOUR_MS);
    for (const name of ["joan", "frances", "barbara"]) await this.begin("2", name);
    await this.advance(2 * HOUR_MS);
    await this.begin("3", `${HOSTILE_NAME}-2`);
    await this.report();
    await operator.cells.freeze("4", { reason: HOSTILE });
    await this.advance(20 * 60_000);
    await this.begin("1", "margaret");
    await this.report();
    const viewer = await operator.keys.mint({ role: "viewer", note: HOSTILE, reason: "a look" });
    await operator.keys.mint({ role: "scraper", note: "Prometheus" });
    const webhook = await this.#addWebhook();
    await this.cron();
    return { viewer: viewer.key, webhook };
  }

  /** An endpoint that can't be reached, and that failed a test. */
  async #addWebhook(): Promise<string> {
    const send = (path: string, body: object): Promise<Response> =>
      this.#host.dispatch(
        new Request(`${this.url}/v1/admin/webhooks${path}`, {
          method: "POST",
          headers: { authorization: `Bearer ${this.keys.operator}`, "content-type": "application/json" },
          body: JSON.stringify(body),
        }),
      );
    const url = `https://hooks.example.invalid/${LONG}`;
    const added = await send("", { url, thresholds: { cell_drift: 10 }, reason: HOSTILE });
    const { webhook } = (await added.json()) as { webhook: { id: string } };
    await (await send(`/${webhook.id}/test`, {})).arrayBuffer();
    return webhook.id;
  }

  /** Cell 2 has drift, cell 3 waits for a person, and cell 5 has never reported. */
  async report(): Promise<void> {
    const sdk = { name: "leasehold", version: "0.1.0" };
    const reconciliation = {
      outcome: "done",
      is_full: true,
      started_ago_ms: 61_000,
      ended_ago_ms: 60_000,
      counts: { processed: 12, committed: 3, rolled_back: 1, pending: 8 },
    } as const;
    const found = { rows: 120_400, claims: 120_397, ranges: 512, equal_ranges: 509 };
    const runs = [
      ["1", { status: "done", is_applied: true, counts: found }],
      ["2", { status: "done", is_applied: false, counts: { ...found, missing: 40, different: 3, extra: 7 } }],
      [
        "3",
        {
          status: "needs_approval",
          counts: { ...found, missing: 1_900, duplicates: 2 },
          approval_reason: HOSTILE,
        },
      ],
    ] as const;
    for (const [cell, verification] of runs)
      await this.client(cell).cells.reportStatus({
        sdk,
        reconciliation,
        verification: { ...verification, started_ago_ms: 2 * HOUR_MS, ended_ago_ms: HOUR_MS },
      });
  }

  /** Begins many leases, with a name each. */
  async beginMany(cell: string, count: number): Promise<void> {
    const { leases } = this.client(cell);
    let begun = 0;
    const send = async (): Promise<void> => {
      while (begun < count) await leases.begin({ creates: [create(`open-${cell}-${(begun += 1)}`)] });
    };
    await Promise.all(Array.from({ length: 100 }, send));
  }

  async close(): Promise<void> {
    await this.#http.close(0);
    this.#host.close();
    this.#clock.stop();
  }

  /** One owner after the other. */
  async #moveName(name: string): Promise<void> {
    const op = create(name);
    const [first, second] = [this.client("1").leases, this.client("2").leases];
    await first.commit((await first.begin({ creates: [op] })).uuid);
    await this.advance(50 * HOUR_MS);
    await first.commit((await first.begin({ destroys: [op] })).uuid);
    await this.advance(2 * HOUR_MS);
    await second.commit((await second.begin({ creates: [create(name)] })).uuid);
  }
}
