import { canonicalize } from "../../../src/common/canonical/canonicalize.ts";
import { placementOf, shardOf } from "../../../src/coordinator/kernel/placement.ts";
import { beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { v4 as newUuid } from "uuid";
import { routeIds, routes } from "../../../src/coordinator/api/contract.ts";
import type { Received } from "../../suites/conformance/client.ts";
import { begun, claim, committed, freshName } from "../../suites/conformance/leases.ts";
import { bucketType, ruleOf } from "../../support/types.ts";
import { Api, env, signedKey, startDeployment } from "../../support/workerd/api.ts";
import { hang, watchDeadlines } from "../../support/workerd/hang.ts";
import { wrappedD1 } from "../../support/workerd/wrapped-d1.ts";
import { watchedNamespace } from "../../support/workerd/counting.ts";

let api: Api;

beforeAll(async () => {
  api = await startDeployment("1", "2");
});

watchDeadlines();

type Binding = "CELL_LEDGER" | "CLAIM_SHARD" | "DIRECTORY";

/** How a call ends: with an error, or never. */
type Fate = "fails" | "hangs";

/** An application in which some calls fail or hang. */
function broken(
  binding: Binding,
  fate: Fate,
  isHit: (call: string, object: string) => boolean = () => true,
): Api {
  const namespace = watchedNamespace(binding, env[binding], (call, object) => {
    if (!isHit(call, object)) return undefined;
    return fate === "fails" ? Promise.reject(new Error("secret internals")) : hang();
  });
  return new Api({ [binding]: namespace });
}

function nameOnShard(shard: number): string {
  for (;;) {
    const name = freshName();
    const form = canonicalize(ruleOf("ROUTES"), name, 1_024);
    if (form.ok && shardOf(bucketType("ROUTES"), form.canonical, 16) === shard) return name;
  }
}

describe.each([
  ["fails", 503, "UNAVAILABLE"],
  ["hangs", 504, "DEADLINE_EXCEEDED"],
] as const)("when a call %s: %i", (fate, status, code) => {
  const body = { creates: [claim(freshName())] };

  test.each([
    ["PUT", `/v1/cells/1/leases/${newUuid()}`, body],
    ["POST", "/v1/cells/1/leases", body],
  ] as const)(
    "begin (%s): the outcome is unknown, so the answer says to repeat it with the same id",
    async (method, path, sent) => {
      const refused = await broken("CELL_LEDGER", fate).problem(status, method, path, {
        key: "cell 1",
        body: sent,
      });
      expect(refused).toMatchObject({ code, retryable: true });
      expect(refused.detail).toMatch(/outcome is unknown; repeat the call with the same lease id/);
      expect(refused.detail).not.toContain("internals");
      if (method === "PUT") expect(path).toContain(refused.lease_uuid);
      else expect(refused.lease_uuid).toMatch(/-7/);
    },
  );

  test.each([
    ["POST", `/v1/cells/1/leases/${newUuid()}/commit`, "CELL_LEDGER"],
    ["POST", `/v1/cells/1/leases/${newUuid()}/rollback`, "CELL_LEDGER"],
    ["GET", `/v1/cells/1/leases/${newUuid()}`, "CELL_LEDGER"],
    ["GET", "/v1/cells/1/leases", "CELL_LEDGER"],
    ["GET", "/v1/cells/1/records?source_type=RAILS_TABLE_ROUTES", "CELL_LEDGER"],
    ["GET", "/v1/cells/1/records?source_type=RAILS_TABLE_ROUTES", "CLAIM_SHARD"],
    ["GET", "/v1/records/ROUTES/x", "CLAIM_SHARD"],
    ["GET", "/v1/records/ROUTES/x", "DIRECTORY"],
  ] as const)("%s %s (%s)", async (method, path, binding) => {
    expect(await broken(binding, fate).problem(status, method, path, { key: "cell 1" })).toMatchObject({
      code,
      retryable: true,
    });
  });

  test("one shard of many: lists and digests fail, and a batch answers for the other names", async () => {
    const { value } = await committed(api, nameOnShard(1));
    const names = [value, nameOnShard(3)];
    const partly = broken("CLAIM_SHARD", fate, (_, object) => object === "shard-3");
    const buckets = names.map((name) => ({ type: "ROUTES", value: name }));
    const lookup = { key: "router", body: { buckets } } as const;
    const { results } = await partly.json<{ results: object[] }>(200, "POST", "/v1/records/lookup", lookup);
    const unavailable = { code, retry_after_ms: expect.any(Number) as number };
    expect(results).toMatchObject([{ found: true }, { bucket: buckets[1], unavailable }]);
    expect(results[1]).not.toHaveProperty("found");
    lookup.body.buckets.shift();
    await partly.problem(status, "POST", "/v1/records/lookup", lookup);
    await partly.problem(status, "GET", "/v1/cells/1/records?source_type=RAILS_TABLE_ROUTES", {
      key: "cell 1",
    });
    const digested = { source_type: "RAILS_TABLE_ROUTES", ranges: [{}] };
    await partly.problem(status, "POST", "/v1/cells/1/records/digests", { key: "cell 1", body: digested });
  });
});

test("a name is unavailable, not free, while the ledger of its lease cannot be reached", async () => {
  const answer = Promise.resolve({ ok: true, value: { found: [{ kind: "unknown" }] } });
  const CLAIM_SHARD = watchedNamespace("CLAIM_SHARD", env.CLAIM_SHARD, (call) =>
    call === "CLAIM_SHARD.lookup" ? answer : undefined,
  );
  const unsure = new Api({ CLAIM_SHARD });
  expect(
    await unsure.problem(503, "GET", `/v1/records/ROUTES/${freshName()}`, { key: "router" }),
  ).toMatchObject({ code: "UNAVAILABLE" });
  const body = { buckets: [{ type: "ROUTES", value: freshName() }] };
  await unsure.problem(503, "POST", "/v1/records/lookup", { key: "router", body });
});

test("an object's refusal reaches the caller with its code, reason and Retry-After", async () => {
  const refusal = {
    code: "RESOURCE_EXHAUSTED",
    detail: "too much",
    reason: "TOO_MANY_BEGINS",
    retryAfterMs: 1_200,
  };
  const answering = (more: object) =>
    new Api({
      CELL_LEDGER: watchedNamespace("CELL_LEDGER", env.CELL_LEDGER, () =>
        Promise.resolve({ ok: false, refusal: { ...refusal, ...more } }),
      ),
    });
  const begin = (using: Api, status: number) =>
    using.problem(status, "POST", "/v1/cells/1/leases", {
      key: "cell 1",
      body: { creates: [claim(freshName())] },
    });
  const refused = await begin(answering({}), 429);
  expect(refused).toMatchObject({
    code: "RESOURCE_EXHAUSTED",
    reason: "TOO_MANY_BEGINS",
    retryable: true,
    detail: "Too much.",
  });
  expect(refused.headers.get("retry-after")).toBe("2");
  expect(await begin(answering({ reason: "LEASE_TOO_LARGE" }), 413)).toMatchObject({ retryable: false });
  expect(await begin(answering({ code: "UNAVAILABLE", reason: "PLACEMENT_MISMATCH" }), 503)).toMatchObject({
    reason: "PLACEMENT_MISMATCH",
  });
  // A cell's key was made for a registered cell, so the answer is PERMISSION_DENIED instead of NOT_FOUND.
  expect(await begin(answering({ code: "PERMISSION_DENIED", reason: "CELL_UNKNOWN" }), 403)).toMatchObject({
    reason: "CELL_UNKNOWN",
  });
});

test("isolates learn the number of shards, so the variable has no effect", async () => {
  const { value: name } = await committed(api);
  const other = new Api({ LEASEHOLD_SHARDS: "8" });
  expect(await other.json(200, "GET", "/healthz", { key: undefined })).toMatchObject({
    placement: placementOf(8),
  });
  const path = `/v1/records/ROUTES/${name}`;
  expect(await other.json(200, "GET", path, { key: "router" })).toMatchObject({ record: { cell_id: "1" } });
  const body = { creates: [claim(name)] };
  const problem = await other.problem(409, "POST", "/v1/cells/2/leases", { key: "cell 2", body });
  expect(problem).toMatchObject({ conflicts: [{ kind: "taken" }] });
  expect(await other.json(200, "GET", "/healthz", { key: undefined })).toMatchObject({
    placement: placementOf(4),
  });
});

describe("the deployment's own faults", () => {
  test.each([
    ["no secret", { LEASEHOLD_SIGNING_SECRET: undefined }, "LEASEHOLD_SIGNING_SECRET"],
    ["an empty secret", { LEASEHOLD_SIGNING_SECRET: "" }, "LEASEHOLD_SIGNING_SECRET"],
    ["a short secret", { LEASEHOLD_SIGNING_SECRET: "hunter2" }, "LEASEHOLD_SIGNING_SECRET"],
    [
      "a short previous secret",
      { LEASEHOLD_PREVIOUS_SIGNING_SECRET: "hunter2" },
      "LEASEHOLD_PREVIOUS_SIGNING_SECRET",
    ],
    ["a number of shards that is not a number", { LEASEHOLD_SHARDS: "many" }, "LEASEHOLD_SHARDS"],
    ["a limit out of range", { LEASEHOLD_BATCH_OPS: "0" }, "LEASEHOLD_BATCH_OPS"],
  ])(
    "%s: every call with a key is refused, and the answer names the variable",
    async (_, changes, variable) => {
      const closed = new Api(changes);
      for (const id of routeIds) {
        const { roles, method, path } = routes[id];
        if (roles === "anyone") continue;
        const refused = await closed.problem(503, method, path.replaceAll(/[{}]/g, ""), {
          key: await signedKey({}),
        });
        expect(refused).toMatchObject({ code: "UNAVAILABLE", detail: expect.stringContaining(variable) });
      }
    },
  );

  test("health needs no secret", async () => {
    await new Api({ LEASEHOLD_SIGNING_SECRET: undefined }).json(200, "GET", "/healthz", { key: null });
  });

  test("an unexpected error is logged and answered with 500, without its text", async () => {
    const log = vi.spyOn(console, "log").mockImplementation(() => {});
    const CELL_LEDGER = {
      getByName: () => ({
        listLeases: () =>
          Promise.resolve({ ok: true, value: { leases: [{ createdAtMs: Number.NaN }], nextPosition: 0 } }),
      }),
    };
    const refused = await new Api({ CELL_LEDGER }).problem(500, "GET", "/v1/cells/1/leases", {
      key: "cell 1",
    });
    const lines = log.mock.calls.map(([line]) => String(line));
    log.mockRestore();
    expect(refused).toMatchObject({ code: "INTERNAL", retryable: true });
    expect(refused.detail).not.toMatch(/invalid|time|RangeError/i);
    expect(lines.some((line) => line.includes('"event":"fault"') && line.includes(refused.request_id))).toBe(
      true,
    );
  });
});

describe("readiness", () => {
  test("runs one check for concurrent requests", async () => {
    let asked = 0;
    const DIRECTORY = watchedNamespace("DIRECTORY", env.DIRECTORY, () => void (asked += 1));
    const shared = new Api({ DIRECTORY });
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => shared.send("GET", "/readyz", { key: null })),
    );
    expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 10 }, () => 200));
    await shared.send("GET", "/readyz", { key: null });
    expect(asked).toBe(1);
  });

  test.each([
    ["CLAIM_SHARD", "shard-3", ["shard 3"]],
    ["DIRECTORY", "directory", ["directory"]],
  ] as const)("without %s %s: 503, and the failed part", async (binding, object, failed) => {
    const refused = await broken(binding, "fails", (_, hit) => hit === object).problem(
      503,
      "GET",
      "/readyz",
      { key: null },
    );
    expect(refused).toMatchObject({ code: "UNAVAILABLE", failed });
  });

  test("without one ledger: 200, and the failed part", async () => {
    const cut = broken("CELL_LEDGER", "fails", (_, hit) => hit === "cell-2");
    expect(await cut.json(200, "GET", "/readyz", { key: null })).toMatchObject({
      status: "ok",
      failed: ["ledger of cell 2"],
    });
  });

  test("without any ledger: 503, and the failed parts", async () => {
    const cut = broken("CELL_LEDGER", "fails", () => true);
    const { failed } = await cut.problem(503, "GET", "/readyz", { key: null });
    expect(failed).toContain("ledger of cell 1");
    expect(failed).toContain("ledger of cell 2");
  });
});

describe("D1", () => {
  const DB = {
    prepare: () => {
      throw new Error("D1_ERROR: secret internals");
    },
    batch: () => Promise.reject(new Error("D1_ERROR: secret internals")),
  };

  test("is down: everything except the stale listing works, and readiness reports it", async () => {
    const cut = new Api({ DB });
    expect(await cut.json(200, "GET", "/readyz", { key: null })).toEqual({
      status: "ok",
      failed: [],
      d1: "down",
      missing_migrations: [],
      last_cron_run: null,
    });
    const { uuid, value } = await begun(cut);
    await cut.json(200, "POST", `/v1/cells/1/leases/${uuid}/commit`, { key: "cell 1" });
    await cut.json(200, "GET", `/v1/records/ROUTES/${value}`, { key: "router" });
    await cut.json(200, "GET", "/v1/cells/1/leases", { key: "cell 1" });
    await cut.json(200, "GET", "/v1/cells/1/records?source_type=RAILS_TABLE_ROUTES", { key: "cell 1" });
    await cut.json(200, "GET", "/v1/admin/cells", {});
    await cut.json(201, "POST", "/v1/admin/keys", { body: { role: "router" } });
    const refused = await cut.problem(503, "GET", "/v1/leases/stale", {});
    expect(refused.detail).not.toContain("internals");
  });
});

describe("D1 without a migration", () => {
  test("fails what needs it and nothing else, and readiness names it", async () => {
    // The table that the missing migration would add.
    const DB = wrappedD1(env.DB, ([sql], work) =>
      sql?.includes("open_leases") ? Promise.reject(new Error("no such table")) : work(),
    );
    await env.DB.prepare("UPDATE d1_migrations SET name = 'x'").run();
    onTestFinished(async () => {
      await env.DB.prepare("UPDATE d1_migrations SET name = '0000_projection.sql'").run();
    });
    const cut = new Api({ DB });
    expect(await cut.json(200, "GET", "/readyz", { key: null })).toMatchObject({
      status: "ok",
      d1: "outdated",
      missing_migrations: ["0000_projection.sql"],
    });
    const { uuid } = await begun(cut);
    await cut.json(200, "POST", `/v1/cells/1/leases/${uuid}/commit`, { key: "cell 1" });
    await cut.problem(503, "GET", "/v1/leases/stale", {});
    await cut.json(200, "GET", "/v1/admin/copies/failed", {});
  });
});

describe("cells whose ledger is down", () => {
  test("are listed with null for the unknown fields", async () => {
    const partly = broken("CELL_LEDGER", "fails", (_, object) => object === "cell-2");
    const { cells } = await partly.json<{ cells: unknown[] }>(200, "GET", "/v1/admin/cells", {});
    expect(cells).toMatchObject([
      { cell_id: "1", state: "ACTIVE", outstanding_leases: expect.any(Number) },
      { cell_id: "2", state: null, outstanding_leases: null },
    ]);
  });

  test("cannot be frozen: 503", async () => {
    await broken("CELL_LEDGER", "fails").problem(503, "POST", "/v1/admin/cells/2/freeze", {});
  });
});

describe("every request", () => {
  test("is logged in one line, without names, paths and keys", async () => {
    const log = vi.spyOn(console, "log");
    let lines: string[];
    let answered: Received;
    const key = await signedKey({ role: "cell", cell: "1", id: "the-key-id" });
    try {
      log.mockImplementation(() => {});
      answered = await api.send("GET", "/v1/records/ROUTES/very-secret-name?x=1", {
        key,
        headers: { "x-request-id": "the-request" },
      });
      await api.send("GET", "/very-secret-path", { key: null });
      await api.send("PROPFIND", "/healthz", { key: null, headers: { "x-request-id": "x".repeat(65) } });
    } finally {
      lines = log.mock.calls
        .map(([line]) => String(line))
        .filter((line) => line.includes('"event":"request"'));
      log.mockRestore();
    }
    expect(lines).toHaveLength(3);
    const requestId = answered.headers.get("x-request-id") ?? "";
    const digits = requestId.replaceAll("-", "");
    expect(JSON.parse(lines[0] ?? "")).toEqual({
      event: "request",
      route: "getRecord",
      method: "GET",
      status: 400,
      code: "INVALID_ARGUMENT",
      role: "cell",
      cell: "1",
      key_id: "the-key-id",
      request_id: requestId,
      caller_request_id: "the-request",
      trace_id: digits,
      span_id: digits.slice(-16),
      duration_ms: expect.any(Number),
    });
    expect(JSON.parse(lines[1] ?? "")).toMatchObject({ route: "none", status: 404, code: "NOT_FOUND" });
    expect(JSON.parse(lines[2] ?? "")).toMatchObject({ method: "other", status: 405 });
    expect(lines[2]).not.toContain("caller_request_id");
    for (const line of lines) expect(line).not.toMatch(/secret|lhk_/);
  });
});

test("[G2] without D1, no growth is started or aborted", async () => {
  const path = "/v1/admin/growth";
  const down = new Api({ DB: wrappedD1(env.DB, () => Promise.reject(new Error("down"))) });
  const body = { reason: "a test" };
  const { shards } = await api.json<{ shards: number }>(200, "GET", path, { key: "operator" });
  const start = { key: "operator", body: { ...body, shards: shards + 1 } } as const;
  expect(await down.problem(503, "POST", path, start)).toMatchObject({ code: "UNAVAILABLE" });
  await api.json(200, "POST", path, start);
  const abort = { key: "operator", body } as const;
  expect(await down.problem(503, "POST", `${path}/abort`, abort)).toMatchObject({ code: "UNAVAILABLE" });
  await api.json(200, "POST", `${path}/abort`, abort);
});
