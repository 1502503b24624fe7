import { describe, expect, test } from "vitest";
import type { Change, ChangesPage } from "../../../src/users/client/index.ts";
import { fakeClient, problem, type Answering } from "./fake.ts";

const change = {
  id: "granted:0:1",
  event: "granted",
  shard: 0,
  position: 2,
  at: "2026-11-28T12:00:00.000Z",
  cell_id: "7",
  lease_uuid: "0b0e8a52-5c0f-4b5e-9a35-2f0c8a1d7e11",
  epoch: 1,
} satisfies Change;

const point = { incarnation: 17, position: 2 };
const ranges = [{ shard: 0, after: point, through: point }];

const page = (checkpoint: string, more: { changes?: Change[]; has_more?: boolean } = {}): Answering => ({
  status: 200,
  json: { changes: [], checkpoint, has_more: false, ranges, unavailable: [], ...more },
});

const down = problem(503, "UNAVAILABLE");

/** Follows until so many pages have come. */
async function follow(
  replies: readonly Answering[],
  pages: number,
  options: { after?: string } = {},
): Promise<{ got: ChangesPage[]; urls: string[] }> {
  const { client, sent } = fakeClient(replies, { retries: 0 });
  const got: ChangesPage[] = [];
  for await (const each of client.changes.follow({ intervalMs: 1, ...options })) {
    got.push(each);
    if (got.length === pages) break;
  }
  return { got, urls: sent.map(({ url }) => url.slice("http://leasehold.test/v1/changes".length)) };
}

describe("page", () => {
  test("[F4] asks with the checkpoint and the filters", async () => {
    const { client, sent } = fakeClient([page("0:2", { changes: [change], has_more: true })]);
    const options = { after: "0:1", cell: "7", bucketType: "ROUTES", pageSize: 10 };
    expect(await client.changes.page(options)).toEqual({
      changes: [change],
      checkpoint: "0:2",
      hasMore: true,
      ranges,
      unavailable: [],
    });
    const { searchParams } = new URL(sent[0]?.url ?? "");
    expect(Object.fromEntries(searchParams)).toEqual({
      after: "0:1",
      cell: "7",
      bucket_type: "ROUTES",
      page_size: "10",
    });
  });

  test("[F4] throws an error of its own if the changes are no longer there", async () => {
    const { client } = fakeClient([problem(410, "FAILED_PRECONDITION", { reason: "CHANGES_PRUNED" })]);
    await expect(client.changes.page({ after: "0:1" })).rejects.toMatchObject({
      name: "ChangesPrunedError",
      status: 410,
    });
  });
});

describe("follow", () => {
  test("[F4] begins with the newest checkpoint, and gives pages that tell something", async () => {
    const replies = [page("0:1"), page("0:1"), page("0:2", { changes: [change] }), page("0:3")];
    const { got, urls } = await follow(replies, 3);
    expect(got.map(({ checkpoint, changes }) => [checkpoint, changes.length])).toEqual([
      ["0:1", 0],
      ["0:2", 1],
      ["0:3", 0],
    ]);
    expect(urls).toEqual(["", "?after=0%3A1", "?after=0%3A1", "?after=0%3A2"]);
  });

  test("[F4] says which shards are unavailable, once", async () => {
    const down1: Answering = {
      status: 200,
      json: { changes: [], checkpoint: "0:4", has_more: false, ranges: [], unavailable: [1] },
    };
    const { got } = await follow([down1, down1, page("0:4")], 2, { after: "0:4" });
    expect(got.map(({ unavailable }) => unavailable)).toEqual([[1], []]);
  });

  test("[F4] goes on after an outage, from the same checkpoint", async () => {
    const { got, urls } = await follow([down, new Error("reset"), page("0:5")], 1, { after: "0:4" });
    expect(got.map(({ checkpoint }) => checkpoint)).toEqual(["0:5"]);
    expect(urls).toEqual(Array(3).fill("?after=0%3A4"));
  });

  test("[F4] throws if the changes are no longer there, or the key may not read them", async () => {
    for (const refusal of [
      problem(410, "FAILED_PRECONDITION", { reason: "CHANGES_PRUNED" }),
      problem(403, "PERMISSION_DENIED"),
    ])
      await expect(follow([refusal], 1, { after: "0:4" })).rejects.toMatchObject({ retryable: false });
  });

  test("ends when its signal aborts, also while it waits", async () => {
    const { client } = fakeClient([page("0:1")]);
    const controller = new AbortController();
    const got: string[] = [];
    for await (const { checkpoint } of client.changes.follow({
      signal: controller.signal,
      intervalMs: 600_000,
    })) {
      got.push(checkpoint);
      setTimeout(() => controller.abort(), 1);
    }
    expect(got).toEqual(["0:1"]);
  });
});
