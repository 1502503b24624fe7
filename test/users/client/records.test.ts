import { describe, expect, it } from "vitest";
import type { Bucket } from "../../../src/users/client/index.ts";
import { errorOf, fakeClient, problem, recordOf, TIME, unavailable, type Reply, type Sent } from "./fake.ts";

const bucket: Bucket = { type: "ROUTES", value: "gitlab-org/a b" };
const owner = { id: "7", address: "https://cell-7.test" };

describe("find", () => {
  it("returns the record and its cell", async () => {
    const found = { record: recordOf("gitlab-org/a b"), cell: owner };
    const { client, sent } = fakeClient([{ status: 200, json: found }]);
    expect(await client.records.find(bucket)).toEqual(found);
    expect(sent).toMatchObject([
      { method: "GET", url: "http://leasehold.test/v1/records/ROUTES/gitlab-org%2Fa%20b", body: undefined },
    ]);
  });

  it("returns undefined when the name has no owner", async () => {
    const { client } = fakeClient([problem(404, "NOT_FOUND")]);
    expect(await client.records.find(bucket)).toBeUndefined();
  });

  it.each<{ what: string; reply: Reply | Error }>([
    {
      what: "a proxy's 404",
      reply: { status: 404, text: "<html>", headers: { "content-type": "text/html" } },
    },
    { what: "a 404 for another reason", reply: problem(404, "NOT_FOUND", { reason: "CELL_UNKNOWN" }) },
    { what: "a part that cannot be reached", reply: unavailable },
    { what: "a refusal", reply: problem(403, "PERMISSION_DENIED") },
    { what: "a broken connection", reply: new TypeError("fetch failed") },
    { what: "an answer without a cell", reply: { status: 200, json: { record: recordOf("a") } } },
  ])("throws for $what, because the owner is not known", async ({ reply }) => {
    const { client } = fakeClient([reply], { retries: 0 });
    await errorOf(client.records.find(bucket));
  });

  it.each(["", ".", "..", "\ud800"])(
    "throws for a name that cannot be a part of a URL: %j",
    async (value) => {
      const { client, sent } = fakeClient([problem(404, "NOT_FOUND")]);
      expect(await errorOf(client.records.find({ type: "USERNAMES", value }))).toMatchObject({
        code: "INVALID_ARGUMENT",
        field: "value",
      });
      expect(sent).toEqual([]);
    },
  );
});

describe("lookup", () => {
  const bucketsOf = ({ body = "" }: Sent): Bucket[] => (JSON.parse(body) as { buckets: Bucket[] }).buckets;
  const names = (count: number): Bucket[] =>
    Array.from({ length: count }, (_, index) => ({ type: "ROUTES", value: `name-${index}` }));
  const answering = async (sent: Sent): Promise<Reply> => ({
    status: 200,
    json: { results: bucketsOf(sent).map((each) => ({ bucket: each, found: false })) },
  });

  it.each([
    [1, [1]],
    [100, [100]],
    [101, [100, 1]],
    [250, [100, 100, 50]],
  ])("of %i names makes calls of %j, and keeps the order", async (count, calls) => {
    const { client, sent } = fakeClient([answering]);
    const results = await client.records.lookup(names(count));
    expect(results.map(({ bucket: each }) => each)).toEqual(names(count));
    expect(sent.map((each) => bucketsOf(each).length)).toEqual(calls);
  });

  it("of no names sends nothing", async () => {
    const { client, sent } = fakeClient([answering]);
    expect(await client.records.lookup([])).toEqual([]);
    expect(sent).toEqual([]);
  });

  it("asks again, alone, for a name whose answer is unknown", async () => {
    const [first, second, third] = names(3);
    const unsure = { code: "UNAVAILABLE", detail: "No answer.", retry_after_ms: 1_000 };
    const partly: Reply = {
      status: 200,
      json: {
        results: [
          { bucket: first, found: false },
          { bucket: second, unavailable: unsure },
          { bucket: third, found: false },
        ],
      },
    };
    const { client, sent } = fakeClient([partly, unavailable, answering]);
    expect(await client.records.lookup(names(3))).toEqual(
      names(3).map((each) => ({ bucket: each, found: false })),
    );
    expect(sent.map(bucketsOf)).toEqual([names(3), [second], [second]]);
  });

  it("fails as a whole when one of its calls fails", async () => {
    const { client } = fakeClient([answering, unavailable], { retries: 0 });
    expect(await errorOf(client.records.lookup(names(101)))).toMatchObject({ code: "UNAVAILABLE" });
  });

  it.each([0, 1, 3])(
    "of two names refuses %i results, because they could belong to other names",
    async (count) => {
      const results = names(count).map((each) => ({ bucket: each, found: false }));
      const { client } = fakeClient([{ status: 200, json: { results } }]);
      expect(await errorOf(client.records.lookup(names(2)))).toMatchObject({ code: "UNAVAILABLE" });
    },
  );
});

describe("digests", () => {
  const hash = "9e8f0ec3bc1e1bffba9946d59e9f5e2a";
  const digest = { count: 1, hash, held: false, newest_updated_at: TIME };
  const empty = { count: 0, hash: "0".repeat(32), held: true, newest_updated_at: null };
  const ask = {
    sourceType: "RAILS_TABLE_USERS",
    ranges: [{ sourceIdLte: "7" }, { sourceIdGt: "7" }],
  } as const;

  it("sends one call for all ranges, and returns times as dates", async () => {
    const { client, sent } = fakeClient([{ status: 200, json: { as_of: TIME, digests: [digest, empty] } }]);
    expect(await client.records.digests({ ...ask, bucketTypes: ["USERNAMES"] })).toEqual({
      asOf: new Date(TIME),
      digests: [
        { count: 1, hash, held: false, newestUpdatedAt: new Date(TIME) },
        { count: 0, hash: "0".repeat(32), held: true, newestUpdatedAt: undefined },
      ],
    });
    expect(sent).toHaveLength(1);
    expect(sent[0]).toMatchObject({
      method: "POST",
      url: "http://leasehold.test/v1/cells/7/records/digests",
    });
    expect(JSON.parse(sent[0]?.body ?? "")).toEqual({
      source_type: "RAILS_TABLE_USERS",
      bucket_types: ["USERNAMES"],
      ranges: [{ source_id_lte: "7" }, { source_id_gt: "7" }],
    });
  });

  it("is retried while its outcome is unknown, because it changes nothing", async () => {
    const { client, sent } = fakeClient([
      unavailable,
      { status: 200, json: { as_of: TIME, digests: [digest, empty] } },
    ]);
    expect((await client.records.digests(ask)).digests).toHaveLength(2);
    expect(sent).toHaveLength(2);
  });

  it.each([0, 1, 3])(
    "of two ranges refuses %i digests, because they could belong to other ranges",
    async (count) => {
      const { client } = fakeClient([
        { status: 200, json: { as_of: TIME, digests: Array.from({ length: count }, () => digest) } },
      ]);
      expect(await errorOf(client.records.digests(ask))).toMatchObject({
        code: "UNAVAILABLE",
        outcomeKnown: true,
      });
    },
  );

  it.each([
    { as_of: "now", digests: [digest, digest] },
    { as_of: TIME, digests: [digest, { ...digest, newest_updated_at: "now" }] },
    { as_of: TIME, digests: [digest, { ...digest, held: undefined }] },
    { digests: [digest, digest] },
  ])("takes no answer that is not whole: %j", async (json) => {
    const { client } = fakeClient([{ status: 200, json }], { retries: 0 });
    expect(await errorOf(client.records.digests(ask))).toMatchObject({
      code: "UNAVAILABLE",
      outcomeKnown: true,
    });
  });
});
