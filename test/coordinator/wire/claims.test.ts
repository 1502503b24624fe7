/** What the suite of the claims service leaves out, because it needs limits, faults or headers of its own. */
import { Code } from "@connectrpc/connect";
import { beforeAll, expect, test, vi } from "vitest";
import { ok } from "../../../src/coordinator/kernel/refusal.ts";
import { handlers } from "../../../src/coordinator/api/handlers.ts";
import type { KeyName } from "../../suites/conformance/client.ts";
import { freshName } from "../../suites/conformance/leases.ts";
import { begin, claimOf, failure, idBytes, own, record, ROUTES_TABLE } from "../../suites/wire/messages.ts";
import { Api, startDeployment } from "../../support/workerd/api.ts";
import { clientOf } from "./clients.ts";

let api: Api;

beforeAll(async () => {
  api = await startDeployment("1", "2");
});

test("[A1] a revoked key is refused before its types are looked up", async () => {
  const { id, key } = await api.json<{ id: string; key: string }>(201, "POST", "/v1/admin/keys", {
    body: { role: "router", note: "a test", reason: "a test" },
  });
  const client = clientOf(api, "Connect", key as KeyName);
  expect((await failure(client.getRecord({ claim: {} }))).code).toBe(Code.InvalidArgument);
  await api.json(200, "POST", `/v1/admin/keys/${id}/revoke`, { body: { reason: "a test" } });
  const other = clientOf(new Api(), "Connect", key as KeyName);
  expect((await failure(other.getRecord({ claim: {} }))).code).toBe(Code.Unauthenticated);
});

test("[W6] a range of records never splits an id, and goes on until the end", async () => {
  const { maxPageItems } = { maxPageItems: 3 };
  const small = new Api({ LEASEHOLD_PAGE_ITEMS: "2", LEASEHOLD_MAX_PAGE_ITEMS: String(maxPageItems) });
  const names = await own(api, clientOf(api), [500, 501, 501, 501, 502, 503]);
  const client = clientOf(small);
  const seen: [string, number][] = [];
  let gt = idBytes(499);
  for (let truncated = true; truncated;) {
    const page = await client.listRecords({
      cellId: 1n,
      sourceType: ROUTES_TABLE,
      sourceIdGt: gt,
      sourceIdLte: idBytes(503),
      claimTypes: [1],
    });
    expect(page.records.length).toBeGreaterThan(0);
    for (const { metadata } of page.records) {
      const id = metadata?.source?.railsPrimaryKeyId ?? new Uint8Array(8);
      gt = Uint8Array.from(id);
      seen.push([String(metadata?.claim?.claim.value), Number(new DataView(gt.buffer).getBigUint64(0))]);
    }
    ({ truncated } = page);
  }
  expect(seen.map(([, id]) => id)).toEqual([500, 501, 501, 501, 502, 503]);
  expect(seen.map(([name]) => name).toSorted()).toEqual(names.toSorted());
});

test("[W6] four pages that have nothing are no empty answer while more may follow", async () => {
  const client = clientOf(api);
  const list = { cellId: 1n, sourceType: ROUTES_TABLE };
  for (const ask of [
    () => client.listRecords({ ...list, limit: 2 }),
    () => client.listRecords({ ...list, claimTypes: [1] }),
    () => client.listLeases({ cellId: 1n }),
  ]) {
    const empty = { records: [], leases: [], next_page_token: "x", split: false };
    const answer = ok({ status: 200 as const, body: empty }) as never;
    const calls = [
      vi.spyOn(handlers, "listRecords").mockResolvedValue(answer),
      vi.spyOn(handlers, "listLeases").mockResolvedValue(answer),
    ];
    const error = await failure(ask());
    const made = calls.reduce((sum, { mock }) => sum + mock.calls.length, 0);
    vi.restoreAllMocks();
    expect([error.code, made]).toEqual([Code.Unavailable, 4]);
  }
});

test("[W6] an id with more records than one call reads is refused, and not cut", async () => {
  const small = new Api({ LEASEHOLD_PAGE_ITEMS: "2", LEASEHOLD_MAX_PAGE_ITEMS: "2" });
  await own(
    api,
    clientOf(api),
    Array.from({ length: 20 }, () => 700),
  );
  const range = { sourceIdGt: idBytes(699), sourceIdLte: idBytes(700), claimTypes: [1] };
  const list = { cellId: 1n, sourceType: ROUTES_TABLE, ...range };
  expect((await clientOf(api).listRecords(list)).records).toHaveLength(20);
  expect((await failure(clientOf(small).listRecords(list))).code).toBe(Code.ResourceExhausted);
});

test("types of buckets without a range filter what is listed", async () => {
  const [name = ""] = await own(api, clientOf(api), [910_001]);
  const client = clientOf(api, "Connect JSON");
  const list = { cellId: 1n, sourceType: ROUTES_TABLE, sourceIdGt: idBytes(910_000) };
  const valuesOf = async (bucketTypes: number[], range: object): Promise<unknown[]> =>
    (await client.listRecords({ ...list, ...range, bucketTypes })).records.map(
      ({ metadata }) => metadata?.bucket?.value,
    );
  expect(await valuesOf([1], {})).toContain(name);
  expect(await valuesOf([4], { sourceIdGt: new Uint8Array() })).toEqual([]);
});

test("[W4] a call whose deadline has passed when it arrives makes no lease", async () => {
  const client = clientOf(api);
  const name = freshName();
  const headers = { "connect-timeout-ms": "0" };
  const error = await failure(client.beginUpdate(begin([record(name)]), { headers }));
  expect(error.code).toBe(Code.DeadlineExceeded);
  expect((await failure(client.getRecord(claimOf(name)))).code).toBe(Code.NotFound);
});

test("[W4] a deadline that passes during a begin leaves its outcome unknown, and says so", async () => {
  const call = vi.spyOn(handlers, "beginLeaseWithNewId").mockReturnValueOnce(new Promise(() => {}));
  const headers = { "connect-timeout-ms": "20" };
  const error = await failure(clientOf(api).beginUpdate(begin([record(freshName())]), { headers }));
  expect(call).toHaveBeenCalledOnce();
  vi.restoreAllMocks();
  expect(error.code).toBe(Code.DeadlineExceeded);
  expect(error.rawMessage).toContain("the outcome is unknown");
});

test("a fault is logged, and its text stays inside", async () => {
  const log = vi.spyOn(console, "log").mockImplementation(() => {});
  vi.spyOn(handlers, "beginLeaseWithNewId").mockRejectedValueOnce(new TypeError("it broke"));
  const error = await failure(clientOf(api).beginUpdate(begin([record(freshName())])));
  const lines = log.mock.calls.map(([line]) => String(line));
  vi.restoreAllMocks();
  expect([error.code, error.rawMessage]).toEqual([Code.Internal, expect.stringContaining("search its log")]);
  expect(lines.filter((line) => line.includes('"event":"fault"') && line.includes("it broke"))).toHaveLength(
    1,
  );
});

test("a call has one line in the log, with its method, caller and result", async () => {
  const log = vi.spyOn(console, "log").mockImplementation(() => {});
  const name = freshName();
  await clientOf(api).beginUpdate(begin([record(name)]));
  await failure(clientOf(api).beginUpdate(begin([record(name)])));
  const lines = log.mock.calls.map(([line]) => JSON.parse(String(line)) as Record<string, unknown>);
  vi.restoreAllMocks();
  const request = { event: "request", route: "wire.BeginUpdate", method: "POST", role: "cell", cell: "1" };
  expect(lines).toEqual([
    expect.objectContaining({ ...request, code: "OK", status: 200 }),
    expect.objectContaining({ ...request, code: "ABORTED", status: 409 }),
  ]);
});

test("a list that is too long is refused before anything of it is looked up", async () => {
  const small = new Api({ LEASEHOLD_BATCH_OPS: "2" });
  const names = [1, 2, 3].map(() => record(freshName()));
  const begun = await failure(clientOf(small).beginUpdate(begin(names)));
  expect([begun.code, begun.rawMessage]).toEqual([
    Code.InvalidArgument,
    expect.stringContaining("`create_records[2]` is beyond the limit of 2"),
  ]);
  const list = { cellId: 1n, sourceType: ROUTES_TABLE, sourceIdGt: idBytes(1), sourceIdLte: idBytes(2) };
  const claimTypes = Array.from({ length: 300 }, () => 1);
  const listed = await failure(clientOf(api).listRecords({ ...list, claimTypes }));
  expect([listed.code, listed.rawMessage]).toEqual([
    Code.InvalidArgument,
    expect.stringMatching(/\[\d+\]` is beyond the limit of \d+ items in one list/),
  ]);
});
