/** What the router sends to the coordinator, and how it reads every kind of answer. */
import { describe, expect, test } from "vitest";
import { HttpSource, type HttpSourceOptions } from "../../../src/users/router/lookups/http-source.ts";
import { VirtualClock } from "../../support/virtual-clock.ts";

interface Sent {
  url: string;
  method: string;
  headers: Record<string, string>;
  body: string | undefined;
}

type Replying = () => Response | Promise<Response>;

const facts = { key: "9f2c47d1a05be836", shard: 3, position: 4_711, settled: true, age_ms: 0 };
const cell = { id: "7", address: "https://cell-7.example.com" };
const found = { cell, epoch: 12, ...facts };
const read = { key: "9f2c47d1a05be836", shard: 3, position: 4_711, settled: true, ageMs: 0 };

function sourceOf(replies: readonly Replying[], options: Partial<HttpSourceOptions> = {}) {
  const clock = new VirtualClock();
  const sent: Sent[] = [];
  const source = new HttpSource({
    url: "https://leasehold.example.com",
    key: "secret",
    fetch: async (url, { method, headers, body }) => {
      sent.push({ url, method, headers, body });
      const reply = replies[Math.min(sent.length, replies.length) - 1];
      if (reply === undefined) throw new Error("no reply");
      return reply();
    },
    clock,
    timeoutMs: 2_000,
    ...options,
  });
  return { source, sent, clock };
}

const json =
  (status: number, body: unknown, headers: Record<string, string> = {}): Replying =>
  () =>
    new Response(JSON.stringify(body), { status, headers });

const none = new Map<number, number>();
const name = (value: string) => ({ type: "ROUTES", value });

describe("a name", () => {
  test("is asked for with its key, and never from an HTTP cache", async () => {
    const { source, sent } = sourceOf([json(200, found)]);
    expect(await source.find(name("gitlab-org/gitlab"), none)).toEqual({
      kind: "found",
      cell,
      epoch: 12,
      ...read,
    });
    expect(sent).toEqual([
      {
        url: "https://leasehold.example.com/v1/route/ROUTES/gitlab-org%2Fgitlab",
        method: "GET",
        headers: { authorization: "Bearer secret", accept: "application/json", "cache-control": "no-cache" },
        body: undefined,
      },
    ]);
  });

  test("is asked for with the positions that the answer must have", async () => {
    const { source, sent } = sourceOf([json(200, found)]);
    const min = new Map([
      [3, 4_711],
      [5, 88],
    ]);
    await source.find(name("a b"), min);
    expect(sent[0]?.url).toMatch(/\/ROUTES\/a%20b\?min_position=3:4711,5:88$/);
  });

  test.each(["", ".", ".."])("is sent in a body if a URL cannot have it: %j", async (value) => {
    const { source, sent } = sourceOf([json(200, { results: [{ found: false, ...facts }] })]);
    expect(await source.find(name(value), none)).toEqual({ kind: "none", ...read });
    expect(sent[0]).toMatchObject({
      url: "https://leasehold.example.com/v1/route",
      method: "POST",
      body: JSON.stringify({ names: [name(value)] }),
    });
  });

  test("that doesn't exist has the position of that answer", async () => {
    const { source } = sourceOf([json(404, { code: "NOT_FOUND", route: facts })]);
    expect(await source.find(name("a"), none)).toEqual({ kind: "none", ...read });
  });

  test.each(["bucket_type", "value"])("that cannot exist says why: %s", async (field) => {
    const { source } = sourceOf([json(400, { code: "INVALID_ARGUMENT", detail: "no", field })]);
    expect(await source.find(name("a"), none)).toEqual({ kind: "invalid", detail: "no", field });
  });

  test.each([
    ["min_position", true],
    ["value", undefined],
  ])("[Q9] that is unavailable because of %s tells whether its shard is behind", async (field, isBehind) => {
    const { source } = sourceOf([json(503, { code: "UNAVAILABLE", field })]);
    const answer = await source.find(name("a"), none);
    expect(answer).toEqual({
      kind: "failed",
      status: 503,
      detail: "status 503 UNAVAILABLE",
      ...(isBehind === undefined ? {} : { isBehind }),
    });
  });

  test.each<[string, Replying]>([
    ["404 of something else", json(404, { code: "NOT_FOUND" })],
    ["404 with half of the facts", json(404, { route: { ...facts, position: -1 } })],
    ["400 about another field", json(400, { code: "INVALID_ARGUMENT", detail: "no", field: "min_position" })],
    ["400 of something else", json(400, {})],
    ["200 without a cell", json(200, facts)],
    ["200 without an epoch", json(200, { cell, ...facts })],
    ["200 with another hash", json(200, { ...found, key: "9F2C" })],
    ["200 with a position in a text", json(200, { ...found, position: "4711" })],
    ["200 with a negative age", json(200, { ...found, age_ms: -1 })],
    ["200 with a list", json(200, [])],
    ["200 with null", json(200, null)],
    ["204", () => new Response(null, { status: 204 })],
    ["302", () => new Response(null, { status: 302, headers: { location: "https://evil.example.com" } })],
    ["401", json(401, { code: "UNAUTHENTICATED" })],
    ["500 with text", () => new Response("oops", { status: 500 })],
    ["504 with HTML", () => new Response("<html>Gateway Timeout</html>", { status: 504 })],
    ["200 that is not UTF-8", () => new Response(new Uint8Array([0xff, 0xfe]), { status: 200 })],
    ["200 of 5 MB", () => new Response(" ".repeat(5_000_000), { status: 200 })],
    ["a broken connection", () => Promise.reject(new TypeError("fetch failed: /v1/route/ROUTES/a"))],
  ])("case 15: has no answer after %s", async (_, reply) => {
    const { source } = sourceOf([reply]);
    const answer = await source.find(name("private-name"), none);
    expect(answer.kind).toBe("failed");
    expect(JSON.stringify(answer)).not.toMatch(/secret|private-name|ROUTES/);
  });

  test("says that the connection is broken, without the address", async () => {
    const cause = Object.assign(new Error("connect 10.0.0.7:443"), { code: "ECONNREFUSED" });
    const { source } = sourceOf([() => Promise.reject(new TypeError("fetch failed", { cause }))]);
    expect(await source.find(name("a"), none)).toEqual({
      kind: "failed",
      detail: "the request to the coordinator failed: TypeError (ECONNREFUSED)",
    });
  });

  test("has no answer when the key has more than one line", async () => {
    const { source, sent } = sourceOf([], { key: () => "secret\nline" });
    const answer = await source.find(name("a"), none);
    expect(answer).toMatchObject({ kind: "failed", detail: expect.stringContaining("`key`") as string });
    expect(JSON.stringify(answer)).not.toContain("secret");
    expect(sent).toEqual([]);
  });

  test("waits as long as the coordinator says", async () => {
    const { source } = sourceOf([json(503, { code: "UNAVAILABLE" }, { "retry-after": "3" })]);
    expect(await source.find(name("a"), none)).toEqual({
      kind: "failed",
      status: 503,
      detail: "status 503 UNAVAILABLE",
      retryAfterMs: 3_000,
    });
  });

  test("has no answer after 2 s, even if `fetch` ignores its signal", async () => {
    const { source, clock } = sourceOf([() => new Promise<Response>(() => {})]);
    const answer = await clock.runUntil(source.find(name("a"), none));
    expect(answer).toEqual({ kind: "failed", detail: "no answer within 2000 ms" });
  });

  test("[Q4] is as old as the HTTP caches in between make it", async () => {
    const ageOf = async (headers: Record<string, string>): Promise<unknown> => {
      const { source } = sourceOf([json(200, { ...found, age_ms: 200 }, headers)]);
      const answer = await source.find(name("a"), none);
      return "ageMs" in answer ? answer.ageMs : answer;
    };
    expect(await ageOf({})).toBe(200);
    expect(await ageOf({ "cache-control": "private, max-age=5" })).toBe(200);
    expect(await ageOf({ age: "3" })).toBe(4_200);
    expect(await ageOf({ "cf-cache-status": "HIT", "cache-control": "private, max-age=5" })).toBe(5_200);
    expect(await ageOf({ "cf-cache-status": "HIT" })).toBe(Infinity);
    expect(await ageOf({ "cf-cache-status": "MISS", "cache-control": "max-age=5" })).toBe(200);
  });
});

describe("many names", () => {
  test("are sent as one message for each 100", async () => {
    const { source, sent } = sourceOf([
      json(200, { results: Array.from({ length: 100 }, () => ({ found: true, ...found })) }),
      json(200, { results: [{ found: false, ...facts }] }),
    ]);
    const names = Array.from({ length: 101 }, (_, at) => name(`n-${at}`));
    const answers = await source.findMany(names, new Map([[3, 7]]));
    expect(answers).toHaveLength(101);
    expect("length" in answers && answers[100]).toEqual({ kind: "none", ...read });
    expect(sent.map(({ url, method }) => `${method} ${new URL(url).pathname}`)).toEqual([
      "POST /v1/route",
      "POST /v1/route",
    ]);
    expect(JSON.parse(sent[1]?.body ?? "")).toEqual({ names: [name("n-100")], min_position: "3:7" });
  });

  const refusal = (field: string) => json(400, { code: "INVALID_ARGUMENT", detail: "no", field });

  test("are asked for again without one that cannot exist", async () => {
    const results = [
      { found: true, ...found },
      { found: false, ...facts },
    ];
    const { source, sent } = sourceOf([refusal("names[1].value"), json(200, { results })]);
    expect(await source.findMany(["a", "b", "c"].map(name), none)).toMatchObject([
      { kind: "found" },
      { kind: "invalid", field: "value" },
      { kind: "none" },
    ]);
    expect(sent.map(({ method, body }) => `${method} ${body}`)).toEqual([
      `POST ${JSON.stringify({ names: ["a", "b", "c"].map(name) })}`,
      `POST ${JSON.stringify({ names: ["a", "c"].map(name) })}`,
    ]);
  });

  test("are asked for one by one if three of them cannot exist", async () => {
    const one = refusal("value");
    const replies = [refusal("names[0].value"), refusal("names[2].value"), refusal("names[0].value")];
    const { source, sent } = sourceOf([...replies, one, json(200, found)]);
    expect(await source.findMany(["a", "b", "c", "d"].map(name), none)).toMatchObject([
      { kind: "invalid" },
      { kind: "invalid" },
      { kind: "found" },
      { kind: "invalid" },
    ]);
    expect(sent.map(({ method }) => method)).toEqual(["POST", "POST", "POST", "GET", "GET"]);
  });

  test.each(["names[2].value", "names", "min_position"])(
    "are asked for one by one if the refusal is about %s",
    async (field) => {
      const { source, sent } = sourceOf([refusal(field), json(200, found)]);
      expect(await source.findMany([name("a"), name("b")], none)).toMatchObject([
        { kind: "found" },
        { kind: "found" },
      ]);
      expect(sent).toHaveLength(3);
    },
  );

  const unavailable = { code: "UNAVAILABLE", detail: "private-name", retry_after_ms: 3_000 };

  test("fail alone if only their shards are unavailable", async () => {
    const results = [
      { found: true, ...found },
      { shard: 5, unavailable },
      { shard: 6, unavailable: { ...unavailable, reason: "HISTORY_LOST", retry_after_ms: 10 ** 9 } },
      { shard: 7, unavailable: { ...unavailable, field: "min_position" } },
    ];
    const { source } = sourceOf([json(200, { results })]);
    expect(await source.findMany(["a", "b", "c", "d"].map(name), none)).toEqual([
      { kind: "found", cell, epoch: 12, ...read },
      { kind: "failed", detail: "shard 5 UNAVAILABLE", shard: 5, retryAfterMs: 3_000 },
      { kind: "failed", detail: "shard 6 UNAVAILABLE HISTORY_LOST", shard: 6, retryAfterMs: 60_000 },
      {
        kind: "failed",
        detail: "shard 7 UNAVAILABLE",
        shard: 7,
        retryAfterMs: 3_000,
        isBehind: true,
      },
    ]);
  });

  test.each([
    { shard: -1, unavailable },
    { shard: "5", unavailable },
    { unavailable },
    { shard: 5, unavailable: null },
    { shard: 5, unavailable: "soon" },
    facts,
    { found: "true", ...found },
  ])("fail together if a result is malformed: %j", async (result) => {
    const { source } = sourceOf([json(200, { results: [result, { found: true, ...found }] })]);
    expect(await source.findMany([name("a"), name("b")], none)).toMatchObject([
      { kind: "failed", status: 200 },
      { kind: "failed", status: 200 },
    ]);
  });

  test("fail together", async () => {
    const { source } = sourceOf([json(200, { results: [{ found: true, ...found }] })]);
    expect(await source.findMany([name("a"), name("b")], none)).toMatchObject([
      { kind: "failed" },
      { kind: "failed" },
    ]);
  });
});

describe("a report", () => {
  const page = {
    shard: 3,
    after: 10,
    through: 12,
    held: [[1, ["9f2c47d1a05be836"]]],
    has_more: false,
    age_ms: 7,
  };

  test("is read from a position", async () => {
    const { source, sent } = sourceOf([json(200, page, { age: "0" })]);
    expect(await source.report(3, 10)).toEqual({
      kind: "page",
      shard: 3,
      after: 10,
      through: 12,
      held: [[11, ["9f2c47d1a05be836"]]],
      hasMore: false,
      ageMs: 1_007,
    });
    expect(sent[0]?.url).toBe("https://leasehold.example.com/v1/reports/3?after=10");
    expect(sent[0]?.headers).not.toHaveProperty("cache-control");
  });

  test("[Q3] is refused when the log has been pruned", async () => {
    const { source } = sourceOf([json(410, { code: "FAILED_PRECONDITION", reason: "REPORT_PRUNED" })]);
    expect(await source.report(3, 10)).toEqual({ kind: "pruned" });
  });

  test.each([
    ["without an end", { ...page, through: undefined }],
    ["with a row of one", { ...page, held: [[1]] }],
    ["with a key that is no hash", { ...page, held: [[1, ["a"]]] }],
    ["with rows in a text", { ...page, held: "rows" }],
  ])("fails %s", async (_, body) => {
    const { source } = sourceOf([json(200, body)]);
    expect(await source.report(3, 10)).toMatchObject({ kind: "failed", status: 200 });
  });
});

describe("the list of cells", () => {
  test("is read with its time in HTTP caches", async () => {
    const { source } = sourceOf([json(200, { cells: [cell], age_ms: 7 }, { age: "2" })]);
    expect(await source.cells()).toEqual({ kind: "cells", cells: [cell], ageMs: 3_000, copyAgeMs: 7 });
  });

  test("fails if a cell has no address", async () => {
    const { source } = sourceOf([json(200, { cells: [{ id: "7" }], age_ms: 0 })]);
    expect(await source.cells()).toMatchObject({ kind: "failed" });
  });
});

test("a closed source ends what runs, and sends nothing", async () => {
  const { source, sent, clock } = sourceOf([() => new Promise<Response>(() => {})]);
  const finding = source.find(name("a"), none);
  await clock.turn();
  source.close();
  expect(await finding).toEqual({ kind: "failed", detail: "the router is closed" });
  expect(await source.report(0, undefined)).toMatchObject({ kind: "failed" });
  expect(sent).toHaveLength(1);
});
