/** The record of which credentials were used, in the real D1. */
import { createExecutionContext, waitOnExecutionContext } from "cloudflare:test";
import { beforeAll, beforeEach, expect, test } from "vitest";
import type { Env } from "../../../../../src/coordinator/env.ts";
import { serveRequest } from "../../../../../src/coordinator/api/web-request.ts";
import { deploy } from "../../../../../src/coordinator/isolate/deployment.ts";
import { pruneCredentialUses } from "../../../../../src/coordinator/capabilities/keys/edge/credential-uses.ts";
import { Database } from "../../../../../src/coordinator/d1/database.ts";
import type { CronRun } from "../../../../../src/coordinator/cron/cron-run.ts";
import { defaultRuntime } from "../../../../../src/coordinator/runtime.ts";
import { faultyD1, type Plan } from "../../../cron/faulty-d1.ts";
import { env, signedKey, startDeployment } from "../../../../support/workerd/api.ts";

const HOUR_MS = 3_600_000;
const START_MS = 1_900_000_000_000 - (1_900_000_000_000 % HOUR_MS);

const isUse = (sql: readonly string[]): boolean => sql.some((text) => text.includes("INTO credential_uses"));

/** An isolate with a clock of its own, and a D1 that fails as the plan says. */
class Isolate {
  nowMs = START_MS;
  readonly #d1: ReturnType<typeof faultyD1>;

  constructor(plan?: Plan) {
    this.#d1 = faultyD1(plan);
    deploy(this.#d1.env, { ...defaultRuntime, clock: { ...defaultRuntime.clock, now: () => this.nowMs } });
  }

  get env(): Env {
    return this.#d1.env;
  }

  /** The writes of uses that reached D1, by the rows that each has written. */
  get writes(): number[] {
    return this.#d1.done.filter(({ sql }) => isUse(sql)).map(({ rowsWritten }) => rowsWritten);
  }

  async get(path: string, key: string): Promise<{ status: number; body: Record<string, unknown> }> {
    const context = createExecutionContext();
    const request = new Request(`https://leasehold.test${path}`, {
      headers: { authorization: `Bearer ${key}` },
    });
    const answer = await serveRequest(request, this.#d1.env, context);
    const body = await answer.json<Record<string, unknown>>();
    await waitOnExecutionContext(context);
    return { status: answer.status, body };
  }

  async uses(query = ""): Promise<Record<string, unknown>[]> {
    const { body } = await this.get(`/v1/admin/credential-uses?${query}`, await viewer(this.nowMs));
    return body["uses"] as Record<string, unknown>[];
  }
}

const seconds = (ms: number): number => Math.floor(ms / 1_000);
const viewer = (nowMs: number): Promise<string> =>
  signedKey({ id: "viewer", role: "viewer", iat: seconds(nowMs), exp: seconds(nowMs) + 60 });
const cellKey = (id: string, cell = "1"): Promise<string> =>
  signedKey({ id, role: "cell", cell, iat: seconds(START_MS), exp: seconds(START_MS) + 86_400 });

beforeAll(() => startDeployment("1"));
beforeEach(() => env.DB.prepare("DELETE FROM credential_uses").run());

test("a key is recorded once per hour, with one row", async () => {
  const isolate = new Isolate();
  const key = await cellKey("k1");
  isolate.nowMs += 59 * 60_000;
  for (let call = 0; call < 3; call += 1) await isolate.get("/v1/cells/1/leases", key);
  expect(isolate.writes).toEqual([1]);
  expect(await isolate.uses("id=k1")).toEqual([
    {
      id: "k1",
      kind: "key",
      role: "cell",
      cell_id: "1",
      issued_by: null,
      name: null,
      expires_at: new Date(START_MS + 86_400_000).toISOString(),
      first_used_at: new Date(START_MS).toISOString(),
      last_used_at: new Date(START_MS).toISOString(),
      revoked_at: null,
    },
  ]);
});

test("the next hour writes the row again, and other isolates write nothing", async () => {
  const [first, second] = [new Isolate(), new Isolate()];
  const key = await cellKey("k1");
  await first.get("/v1/cells/1/leases", key);
  await second.get("/v1/cells/1/leases", key);
  expect([first.writes, second.writes]).toEqual([[1], [0]]);
  second.nowMs += HOUR_MS;
  await second.get("/v1/cells/1/leases", key);
  // The clock of the first isolate is an hour behind.
  await first.get("/v1/cells/1/leases", await cellKey("k2"));
  expect([first.writes, second.writes]).toEqual([
    [1, 1],
    [0, 1],
  ]);
  expect(await first.uses("id=k1")).toMatchObject([
    {
      first_used_at: new Date(START_MS).toISOString(),
      last_used_at: new Date(START_MS + HOUR_MS).toISOString(),
    },
  ]);
});

test("what was refused is no use", async () => {
  const isolate = new Isolate();
  const operator = await signedKey({ id: "op", iat: seconds(START_MS), exp: seconds(START_MS) + 600 });
  const revoked = await cellKey("revoked");
  const post = new Request("https://leasehold.test/v1/admin/keys/revoked/revoke", {
    method: "POST",
    headers: { authorization: `Bearer ${operator}`, "content-type": "application/json" },
    body: JSON.stringify({ cell_id: "1" }),
  });
  const context = createExecutionContext();
  expect((await serveRequest(post, isolate.env, context)).status).toBe(200);
  await waitOnExecutionContext(context);
  expect((await isolate.get("/v1/cells/1/leases", revoked)).status).toBe(401);
  expect((await isolate.get("/v1/cells/1/leases", await cellKey("other", "2"))).status).toBe(403);
  expect((await isolate.get("/v1/cells/1/leases", `${await cellKey("forged")}x`)).status).toBe(401);
  const ids = (await isolate.uses()).map(({ id }) => id);
  expect(ids).toEqual(["op"]);
});

test("while D1 is down, requests are answered, and it is asked once a minute", async () => {
  let isDown = true;
  let asked = 0;
  const isolate = new Isolate((_, sql) => {
    if (isUse(sql)) asked += 1;
    return isDown ? "before" : undefined;
  });
  const keys = await Promise.all(["k1", "k2", "k3"].map((id) => cellKey(id)));
  for (const key of keys) expect((await isolate.get("/v1/cells/1/leases", key)).status).toBe(200);
  expect(asked).toBe(1);
  isolate.nowMs += 59_999;
  await isolate.get("/v1/cells/1/leases", await cellKey("k1"));
  expect(asked).toBe(1);
  isDown = false;
  isolate.nowMs += 1;
  await isolate.get("/v1/cells/1/leases", await cellKey("k1"));
  // All that waited, in one statement.
  expect(isolate.writes).toEqual([3]);
});

test("[M4] a clock that was set back makes nothing wait for longer than the pause", async () => {
  let isDown = true;
  const isolate = new Isolate((_, sql) => (isDown && isUse(sql) ? "before" : undefined));
  isolate.nowMs += 2 * HOUR_MS;
  await isolate.get("/v1/cells/1/leases", await cellKey("k1"));
  isDown = false;
  isolate.nowMs -= HOUR_MS;
  await isolate.get("/v1/cells/1/leases", await cellKey("k1"));
  expect(isolate.writes).toEqual([1]);
});

test("a write whose answer is lost is repeated, and changes nothing", async () => {
  let lost = 1;
  const isolate = new Isolate((_, sql) => (isUse(sql) && lost-- > 0 ? "after" : undefined));
  await isolate.get("/v1/cells/1/leases", await cellKey("k1"));
  isolate.nowMs += 60_000;
  await isolate.get("/v1/cells/1/leases", await cellKey("k2"));
  expect(isolate.writes).toEqual([1, 1]);
});

test("the list has pages, filters by kind, and says when a credential was revoked", async () => {
  const isolate = new Isolate();
  const rows = Array.from({ length: 5 }, (_, index) =>
    env.DB.prepare(
      "INSERT INTO credential_uses VALUES (?, ?, 'cell', '1', 'ca', 'cell-1', NULL, NULL, ?, ?)",
    ).bind(`c${index}`, index % 2 === 0 ? "certificate" : "token", START_MS, START_MS),
  );
  await env.DB.batch([
    ...rows,
    env.DB.prepare("INSERT INTO keys VALUES ('c2', 1, 'cell', '1', NULL, 0, ?, ?)").bind(START_MS, START_MS),
  ]);
  const first = await isolate.get(
    "/v1/admin/credential-uses?kind=certificate&page_size=2",
    await viewer(START_MS),
  );
  expect(first.body["uses"]).toMatchObject([
    { id: "c0", revoked_at: null },
    { id: "c2", revoked_at: new Date(START_MS).toISOString() },
  ]);
  expect(
    await isolate.uses(`kind=certificate&page_size=2&page_token=${String(first.body["next_page_token"])}`),
  ).toMatchObject([{ id: "c4" }]);
  const ids = Array.from({ length: 51 }, (_, index) => `id=k${index}`).join("&");
  const refused = await isolate.get(`/v1/admin/credential-uses?${ids}`, await viewer(START_MS));
  expect(refused).toMatchObject({ status: 400, body: { field: "id[50]" } });
  await env.DB.prepare("DELETE FROM keys").run();
});

test("rows are forgotten after the life of a key, and beyond 10,000", async () => {
  const insert = (from: number, count: number, usedMs: number) =>
    env.DB.prepare(
      `WITH RECURSIVE n(i) AS (SELECT ?1 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ?1 + ?2)
       INSERT INTO credential_uses
       SELECT 'k' || i, 'key', 'viewer', NULL, NULL, NULL, NULL, NULL, ?3 + i, ?3 + i FROM n`,
    ).bind(from, count, usedMs);
  await env.DB.batch([insert(0, 5, START_MS - 101_000), insert(100, 10_003, START_MS)]);
  const run = { database: new Database(env), limits: { keyLifetimeS: 100 } } as unknown as CronRun;
  expect(await pruneCredentialUses(run, START_MS)).toMatchObject({ ok: true });
  const left = await env.DB.prepare(
    "SELECT count(*) AS count, min(last_used_at_ms) AS first FROM credential_uses",
  ).first();
  expect(left).toEqual({ count: 10_000, first: START_MS + 103 });
});
