import { expect, it } from "vitest";
import {
  createClient,
  InvalidArgumentError,
  type Batch,
  type Fetch,
} from "../../../src/users/client/index.ts";
import {
  committed,
  errorOf,
  fakeClient,
  fakeFetch,
  granted,
  leaseOf,
  responseOf,
  rolledBack,
  UUID,
  type Sent,
} from "./fake.ts";

const batch: Batch = { destroys: [{ bucket: { type: "ROUTES", value: "a/b" } }] };
const path = `http://leasehold.test/v1/cells/7/leases/${UUID}`;
const headers = { authorization: "Bearer secret", accept: "application/json" };
const requestOf = ({ signal: _signal, ...request }: Sent): Omit<Sent, "signal"> => request;

it("begins with the UUID in the path and the key in the header", async () => {
  const { client, sent } = fakeClient([granted]);
  expect(await client.leases.begin(batch, { uuid: UUID })).toMatchObject({ uuid: UUID, state: "GRANTED" });
  expect(sent.map(requestOf)).toEqual([
    {
      method: "PUT",
      url: path,
      body: JSON.stringify(batch),
      headers: { ...headers, "content-type": "application/json" },
    },
  ]);
});

it("sends how long a begin may wait, in whole milliseconds, and nothing if it may not", async () => {
  const { client, sent } = fakeClient([granted]);
  await client.leases.begin(batch, { waitMs: 1_999.5 });
  await client.leases.begin({ ...batch, wait_ms: 3_000 });
  await client.leases.begin({ ...batch, wait_ms: 3_000 }, { waitMs: 0 });
  expect(sent.map(({ body }) => JSON.parse(body ?? "") as unknown)).toEqual([
    { ...batch, wait_ms: 2_000 },
    { ...batch, wait_ms: 3_000 },
    batch,
  ]);
});

it.each([-1, Number.NaN])("refuses to wait for %d ms", async (waitMs) => {
  const { client, sent } = fakeClient([granted]);
  expect(await errorOf(client.leases.begin(batch, { waitMs }))).toMatchObject({
    code: "INVALID_ARGUMENT",
    field: "waitMs",
  });
  expect(sent).toEqual([]);
});

it("makes a new UUID for every begin without one", async () => {
  const { client, sent } = fakeClient([granted]);
  await client.leases.begin(batch);
  await client.leases.begin(batch);
  const uuids = sent.map(({ url }) => url.split("/").at(-1) ?? "");
  expect(new Set(uuids).size).toBe(2);
  for (const uuid of uuids)
    expect(uuid).toMatch(/^[\da-f]{8}-[\da-f]{4}-7[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/);
});

it("returns the committed lease for a begin that was committed before", async () => {
  const { client } = fakeClient([committed]);
  expect(await client.leases.begin(batch, { uuid: UUID })).toMatchObject({ state: "COMMITTED" });
});

it.each([
  ["commit", committed],
  ["rollback", rolledBack],
] as const)("sends a %s without a body, unless an operator gives a reason", async (decision, reply) => {
  const { client, sent } = fakeClient([reply]);
  await client.leases[decision](UUID);
  await client.leases[decision](UUID, { reason: "the cell is gone" });
  expect(sent.map(requestOf)).toEqual([
    { method: "POST", url: `${path}/${decision}`, body: undefined, headers },
    {
      method: "POST",
      url: `${path}/${decision}`,
      body: '{"reason":"the cell is gone"}',
      headers: { ...headers, "content-type": "application/json" },
    },
  ]);
});

it("reads one lease", async () => {
  const { client, sent } = fakeClient([granted]);
  expect(await client.leases.get(UUID)).toEqual(leaseOf("GRANTED"));
  expect(sent.map(requestOf)).toEqual([{ method: "GET", url: path, body: undefined, headers }]);
});

it("the outcome of a call whose lease has an unknown state is unknown, except that of a read", async () => {
  const newer = { status: 200, json: { lease: { ...leaseOf("GRANTED"), state: "PAUSED" } } };
  const { client } = fakeClient([newer]);
  const text = "the lease has a state that this client does not know: PAUSED";
  const failed = { code: "UNAVAILABLE", message: expect.stringContaining(text) as string };
  expect(await errorOf(client.leases.commit(UUID))).toMatchObject({ ...failed, outcomeKnown: false });
  expect(await errorOf(client.leases.get(UUID))).toMatchObject({ ...failed, outcomeKnown: true });
});

it("escapes values in the path", async () => {
  const { client, sent } = fakeClient([granted], { cell: "a/b ?#" });
  await client.leases.get("..%2f");
  expect(sent[0]?.url).toBe("http://leasehold.test/v1/cells/a%2Fb%20%3F%23/leases/..%252f");
});

it.each(["", ".", "..", "\ud800"])("sends nothing for an id that a URL cannot carry: %j", async (uuid) => {
  const { client, sent } = fakeClient([granted]);
  const error = await errorOf(client.leases.commit(uuid));
  expect(error).toBeInstanceOf(InvalidArgumentError);
  expect(error).toMatchObject({ field: "uuid", outcomeKnown: true });
  expect(sent).toEqual([]);
});

it("adds the caller's headers, and keeps its own", async () => {
  const { client, sent } = fakeClient([granted], {
    headers: () => ({ traceparent: "00-1", authorization: "Bearer other" }),
  });
  await client.leases.get(UUID);
  expect(sent[0]?.headers).toEqual({ ...headers, traceparent: "00-1" });
});

it("requires a cell for calls about a cell", async () => {
  const { fetch, sent } = fakeFetch(granted);
  const client = createClient({ url: "http://x", key: "k", fetch });
  expect(await errorOf(client.leases.begin(batch))).toMatchObject({
    code: "INVALID_ARGUMENT",
    field: "cell",
  });
  expect(await errorOf(client.leases.commit(UUID))).toBeInstanceOf(InvalidArgumentError);
  expect(() => client.leases.list()).toThrow(InvalidArgumentError);
  expect(() => client.records.list({ sourceType: "RAILS_TABLE_USERS" })).toThrow(InvalidArgumentError);
  expect(sent).toEqual([]);
  await client.forCell("9").leases.get(UUID);
  expect(sent[0]?.url).toBe(`http://x/v1/cells/9/leases/${UUID}`);
});

it("sets `leaseUuid` on errors, so that a begin without an answer can be rolled back", async () => {
  const { client, sent } = fakeClient([new TypeError("fetch failed")], { retries: 0 });
  const error = await errorOf(client.leases.begin({}));
  expect(error).toMatchObject({ outcomeKnown: false, leaseUuid: sent[0]?.url.split("/").at(-1) });
  expect(await errorOf(client.leases.commit(UUID))).toMatchObject({ leaseUuid: UUID });
});

it("follows no redirect, which could change the call", async () => {
  const redirects: string[] = [];
  const fetch: Fetch = async (_, { redirect }) => {
    redirects.push(redirect);
    return responseOf({ status: 307, text: "", headers: { location: "http://elsewhere.test/" } });
  };
  const { client } = fakeClient([], { retries: 0, fetch });
  expect(await errorOf(client.leases.begin({}))).toMatchObject({ code: "UNAVAILABLE", outcomeKnown: false });
  expect(redirects).toEqual(["manual"]);
});
