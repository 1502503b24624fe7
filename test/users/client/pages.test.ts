import { describe, expect, it } from "vitest";
import { errorOf, fakeClient, leaseOf, recordOf, unavailable, type Reply, type Sent, TIME } from "./fake.ts";

const UUIDS = ["a", "b", "c"].map((last) => `01890000-0000-7000-8000-00000000000${last}`);
const page = (uuids: readonly string[], nextPageToken: string): Reply => ({
  status: 200,
  json: { leases: uuids.map((uuid) => leaseOf("GRANTED", uuid)), next_page_token: nextPageToken },
});
const queryOf = ({ url }: Sent): Record<string, string> => Object.fromEntries(new URL(url).searchParams);
const three = [page(UUIDS.slice(0, 2), "p+/="), page([], "q"), page(UUIDS.slice(2), "")];

describe("a listing", () => {
  it("yields all items, and requests pages on demand", async () => {
    const { client, sent } = fakeClient(three);
    const seen: string[] = [];
    for await (const { uuid } of client.leases.list({ pageSize: 2 })) {
      seen.push(uuid);
      if (seen.length === 2) expect(sent).toHaveLength(1);
    }
    expect(seen).toEqual(UUIDS);
    expect(sent.map(queryOf)).toEqual([
      { page_size: "2" },
      { page_size: "2", page_token: "p+/=" },
      { page_size: "2", page_token: "q" },
    ]);
  });

  it("requests no page before the loop needs it", async () => {
    const { client, sent } = fakeClient(three);
    const listing = client.leases.list();
    expect(sent).toEqual([]);
    for await (const lease of listing) if (lease.uuid === UUIDS[0]) break;
    expect(sent).toHaveLength(1);
  });

  it("yields pages, including empty ones", async () => {
    const { client } = fakeClient(three);
    const tokens: string[] = [];
    for await (const { nextPageToken } of client.leases.list().pages()) tokens.push(nextPageToken);
    expect(tokens).toEqual(["p+/=", "q", ""]);
  });

  it("returns all items at once", async () => {
    const { client } = fakeClient(three);
    expect((await client.leases.list().all()).map(({ uuid }) => uuid)).toEqual(UUIDS);
  });

  it("continues from a page token", async () => {
    const { client, sent } = fakeClient(three.slice(2));
    expect(await client.leases.list({ pageToken: "q" }).all()).toHaveLength(1);
    expect(sent.map(queryOf)).toEqual([{ page_token: "q" }]);
  });

  it("can be limited by time", async () => {
    const { client, sent } = fakeClient(three.slice(2));
    await client.leases.list({ createdAfter: new Date(0) }).all();
    expect(sent.map(queryOf)).toEqual([{ created_after: "1970-01-01T00:00:00.000Z" }]);
  });

  it.each([
    { what: "a page points to itself", replies: [page(UUIDS, "p")], from: undefined, calls: 2 },
    {
      what: "a later page points back",
      replies: [page([], "p"), page([], "q"), page([], "p")],
      from: undefined,
      calls: 3,
    },
    { what: "it comes back to where it began", replies: [page([], "p")], from: "p", calls: 1 },
  ])("fails when $what, instead of continuing forever", async ({ replies, from, calls }) => {
    const { client, sent } = fakeClient(replies);
    await expect(client.leases.list({ pageToken: from }).all()).rejects.toThrow("the same page token twice");
    expect(sent).toHaveLength(calls);
  });

  it("fails when a page fails, and never returns a shortened list", async () => {
    const { client } = fakeClient([page(UUIDS, "p"), unavailable], { retries: 0 });
    expect(await errorOf(client.leases.list().all())).toMatchObject({ code: "UNAVAILABLE" });
  });

  it.each([
    { next_page_token: "" },
    { leases: [] },
    { leases: {}, next_page_token: "" },
    { leases: [{ uuid: UUIDS[0] }], next_page_token: "" },
  ])("takes %j for no page", async (json) => {
    const { client } = fakeClient([{ status: 200, json }], { retries: 0 });
    expect(await errorOf(client.leases.list().all())).toMatchObject({
      code: "UNAVAILABLE",
      outcomeKnown: true,
    });
  });
});

it("lists records by source, with a parameter for each bucket type", async () => {
  const { client, sent } = fakeClient([
    { status: 200, json: { as_of: TIME, records: [recordOf("a")], split: false, next_page_token: "" } },
  ]);
  const range = {
    sourceIdGt: "1",
    sourceIdLte: "9",
    bucketTypes: ["ROUTES", "USERNAMES"] as const,
    pageSize: 5,
  };
  expect(await client.records.list({ sourceType: "RAILS_TABLE_ROUTES", ...range }).all()).toEqual([
    recordOf("a"),
  ]);
  const { pathname, searchParams } = new URL(sent[0]?.url ?? "");
  expect(pathname).toBe("/v1/cells/7/records");
  expect([...searchParams]).toEqual([
    ["source_type", "RAILS_TABLE_ROUTES"],
    ["source_id_gt", "1"],
    ["source_id_lte", "9"],
    ["bucket_type", "ROUTES"],
    ["bucket_type", "USERNAMES"],
    ["page_size", "5"],
  ]);
});

it("tells when each page of records was read", async () => {
  const later = "2026-11-20T12:00:07.000Z";
  const answer = (asOf: string, name: string, token: string) => ({
    status: 200,
    json: { as_of: asOf, records: [recordOf(name)], split: false, next_page_token: token },
  });
  const { client } = fakeClient([answer(TIME, "a", "p"), answer(later, "b", "")]);
  const pages = await Array.fromAsync(client.records.list({ sourceType: "RAILS_TABLE_ROUTES" }).pages());
  expect(pages.map(({ asOf, items }) => [asOf, items.length])).toEqual([
    [new Date(TIME), 1],
    [new Date(later), 1],
  ]);
});

it("refuses a page with an invalid time", async () => {
  const { client } = fakeClient([
    { status: 200, json: { as_of: "soon", records: [], split: false, next_page_token: "" } },
  ]);
  const error = await errorOf(client.records.list({ sourceType: "RAILS_TABLE_ROUTES" }).all());
  expect(error).toMatchObject({ code: "UNAVAILABLE", outcomeKnown: true });
});
