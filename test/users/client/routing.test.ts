import { describe, expect, it } from "vitest";
import type { Bucket } from "../../../src/users/client/index.ts";
import { errorOf, fakeClient, problem, unavailable, UUID, type Reply, type Sent } from "./fake.ts";

const name: Bucket = { type: "ROUTES", value: "gitlab-org/a b" };
const cell = { id: "7", address: "https://cell-7.test" };
const facts = { key: "9f2c47d1a05be836", shard: 3, position: 4_711, settled: true, age_ms: 12 };
const shown = { key: "9f2c47d1a05be836", shard: 3, position: 4_711, settled: true, ageMs: 12 };

describe("find", () => {
  it("returns the cell and what the answer is worth", async () => {
    const { client, sent } = fakeClient([{ status: 200, json: { cell, epoch: 12, ...facts } }]);
    expect(await client.routing.find(name)).toEqual({ cell, epoch: 12, ...shown });
    expect(sent).toMatchObject([
      { method: "GET", url: "http://leasehold.test/v1/route/ROUTES/gitlab-org%2Fa%20b", body: undefined },
    ]);
  });

  it("[Q9] sends the positions that the shards must have reached", async () => {
    const { client, sent } = fakeClient([{ status: 200, json: { cell, ...facts } }]);
    const { epoch } = await client.routing.find(name, { minPositions: { 3: 4_711, 5: 88 } });
    expect(epoch).toBeUndefined();
    expect(new URL(sent[0]?.url ?? "").searchParams.get("min_position")).toBe("3:4711,5:88");
  });

  it("[Q9] asks again while the shard has not reached its position", async () => {
    const { client, sent } = fakeClient([unavailable, { status: 200, json: { cell, epoch: 12, ...facts } }]);
    expect(await client.routing.find(name, { minPositions: { 3: 4_711 } })).toMatchObject({ cell });
    expect(sent).toHaveLength(2);
  });

  it("returns what the answer is worth that no cell has the name", async () => {
    const { client } = fakeClient([problem(404, "NOT_FOUND", { route: facts })]);
    expect(await client.routing.find(name)).toEqual({ cell: undefined, epoch: undefined, ...shown });
  });

  it.each<{ what: string; reply: Reply | Error }>([
    { what: "a 404 without the position of the answer", reply: problem(404, "NOT_FOUND") },
    {
      what: "a 404 with a malformed position",
      reply: problem(404, "NOT_FOUND", { route: { ...facts, position: "4711" } }),
    },
    { what: "a 404 for another reason", reply: problem(404, "NOT_FOUND", { reason: "ROUTE_UNKNOWN" }) },
    { what: "an answer without a position", reply: { status: 200, json: { cell, epoch: 12 } } },
    { what: "a part that cannot be reached", reply: unavailable },
  ])("throws for $what, because the cell is not known", async ({ reply }) => {
    const { client } = fakeClient([reply], { retries: 0 });
    await errorOf(client.routing.find(name));
  });
});

describe("findMany", () => {
  const namesOf = ({ body = "" }: Sent): Bucket[] => (JSON.parse(body) as { names: Bucket[] }).names;
  const names = Array.from(
    { length: 101 },
    (_, index) => ({ type: "ROUTES", value: `name-${index}` }) as const,
  );

  it("asks for 100 names per call, and keeps their order", async () => {
    const answering = async (sent: Sent): Promise<Reply> => ({
      status: 200,
      json: {
        results: namesOf(sent).map((each) => ({
          name: each,
          found: true,
          cell: { id: each.value.slice(5), address: "https://cell.test" },
          epoch: 1,
          ...facts,
        })),
      },
    });
    const { client, sent } = fakeClient([answering]);
    const found = await client.routing.findMany(names, { minPositions: { 0: 7 } });
    expect(found.map((each) => ("cell" in each ? each.cell?.id : each))).toEqual(
      names.map((_, index) => String(index)),
    );
    expect(sent.map((each) => namesOf(each).length)).toEqual([100, 1]);
    for (const { body = "" } of sent) expect(JSON.parse(body)).toMatchObject({ min_position: "0:7" });
  });

  it("answers the other names if the answer for one is not known", async () => {
    const failed = { code: "UNAVAILABLE", detail: "Shard 5 cannot be reached.", retry_after_ms: 3_000 };
    const results = [
      { name, found: false, ...facts },
      { name, shard: 5, unavailable: failed },
      { name, shard: 6, unavailable: { ...failed, code: "DEADLINE_EXCEEDED" } },
    ];
    const { client } = fakeClient([{ status: 200, json: { results } }]);
    const [free, ...unknown] = await client.routing.findMany([name, name, name]);
    expect(free).toEqual({ cell: undefined, epoch: undefined, ...shown });
    expect(unknown).toMatchObject([
      { error: { name: "UnavailableError", message: "Shard 5 cannot be reached.", retryAfterMs: 3_000 } },
      { error: { name: "TimeoutError", retryable: true } },
    ]);
  });

  it.each([null, {}, { found: true }, { shard: 5, unavailable: null }, { shard: 5, unavailable: {} }])(
    "throws for a malformed result: %j",
    async (result) => {
      const { client } = fakeClient([{ status: 200, json: { results: [result] } }], { retries: 0 });
      expect(await errorOf(client.routing.findMany([name]))).toMatchObject({ code: "UNAVAILABLE" });
    },
  );

  it("throws if a result is missing", async () => {
    const { client } = fakeClient([{ status: 200, json: { results: [] } }], { retries: 0 });
    expect(await errorOf(client.routing.findMany([name]))).toMatchObject({ code: "UNAVAILABLE" });
  });
});

describe("report", () => {
  const report = { shard: 3, after: 4_711, through: 4_890, has_more: true, age_ms: 0 };

  it("[Q3] returns the keys that were put on hold, by position", async () => {
    const json = { ...report, held: [[1, ["9f2c47d1a05be836"]]] };
    const { client, sent } = fakeClient([{ status: 200, json }]);
    expect(await client.routing.report(3, { after: 4_711 })).toEqual({
      shard: 3,
      after: 4_711,
      through: 4_890,
      held: [{ position: 4_712, keys: ["9f2c47d1a05be836"] }],
      hasMore: true,
      ageMs: 0,
    });
    expect(sent[0]?.url).toBe("http://leasehold.test/v1/reports/3?after=4711");
  });

  it("asks for the newest position without `after`", async () => {
    const { client, sent } = fakeClient([{ status: 200, json: { ...report, held: [] } }]);
    await client.routing.report(0);
    expect(sent[0]?.url).toBe("http://leasehold.test/v1/reports/0");
  });

  it.each([[[]], [[1]], [["1", []]], [[1, [7]]], ["x"], [null]])(
    "throws for a malformed row: %j",
    async (row) => {
      const { client } = fakeClient([{ status: 200, json: { ...report, held: [row] } }], { retries: 0 });
      expect(await errorOf(client.routing.report(3))).toMatchObject({ code: "UNAVAILABLE" });
    },
  );

  it("[Q3] throws an error of its own if the shard no longer knows all changes", async () => {
    const { client } = fakeClient([problem(410, "FAILED_PRECONDITION", { reason: "REPORT_PRUNED" })]);
    expect(await errorOf(client.routing.report(3, { after: 1 }))).toMatchObject({
      name: "ReportPrunedError",
      status: 410,
    });
  });
});

it("lists the addresses of cells", async () => {
  const { client } = fakeClient([{ status: 200, json: { cells: [cell], age_ms: 0 } }]);
  expect(await client.routing.cells()).toEqual([cell]);
});

it.each(["begin", "commit", "rollback"] as const)(
  "[Q9] a %s returns the positions of its shards",
  async (call) => {
    const lease = { uuid: UUID, cell_id: "7", state: "GRANTED", created_at: "", age_ms: 0 };
    const counts = { creates: 0, destroys: 0, replaces: 0, missing: 0 };
    const json = { lease: { ...lease, counts }, positions: { 3: 4_711 } };
    const { client } = fakeClient([{ status: 200, json }]);
    const { leases } = client;
    const answered = await {
      begin: () => leases.begin({}),
      commit: () => leases.commit(UUID),
      rollback: () => leases.rollback(UUID),
    }[call]();
    expect(answered.positions).toEqual({ 3: 4_711 });
  },
);
