/** Leases and records over the wire, with clients of Connect and gRPC-Web. */
import { Code, ConnectError } from "@connectrpc/connect";
import { create } from "@bufbuild/protobuf";
import { anyPack, StringValueSchema, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { v4 as newUuid } from "uuid";
import { beforeAll, describe, expect, test, vi } from "vitest";
import { InternalApi } from "../../src/http/internal-api.ts";
import { Record_Status } from "../../src/wire/protobuf.ts";
import { BadRequestSchema, ErrorInfoSchema, RetryInfoSchema } from "../../src/wire/protobuf.ts";
import { addressOf, applied, claim, freshName } from "../suites/conformance/leases.ts";
import type { KeyName } from "../suites/conformance/client.ts";
import { Api, startDeployment } from "../support/workerd/api.ts";
import { clientOf, protocols } from "./clients.ts";

let api: Api;

beforeAll(async () => {
  api = await startDeployment("1", "2");
});

const idBytes = (id: number): Uint8Array<ArrayBuffer> => {
  const bytes = new Uint8Array(8);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(id));
  return bytes;
};

const ROUTES_TABLE = 3;
const record = (route: string, id = 42, subject = 7) => ({
  claim: { claim: { case: "route" as const, value: route } },
  subject: { type: 2, id: BigInt(subject) },
  source: { type: ROUTES_TABLE, railsPrimaryKeyId: idBytes(id) },
});
const begin = (createRecords: object[], destroyRecords: object[] = [], cellId = 1n) => ({
  cellId,
  createRecords,
  destroyRecords,
});
const claimOf = (route: string) => ({ claim: { claim: { case: "route" as const, value: route } } });

const failure = async (call: Promise<unknown>): Promise<ConnectError> => {
  const error = await call.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(ConnectError);
  return error as ConnectError;
};

/** Commits claims of a name for each id. */
async function own(ids: readonly number[], cell = 1): Promise<string[]> {
  const client = clientOf(api, "Connect", `cell ${cell}`);
  const names = ids.map(() => freshName());
  const records = names.map((name, index) => record(name, ids[index]));
  const { leaseUuid } = await client.beginUpdate(begin(records, [], BigInt(cell)));
  await client.commitUpdate({ cellId: BigInt(cell), leaseUuid });
  for (const name of names) await applied(api, name);
  return names;
}

describe.each(protocols)("%s", (protocol) => {
  test("leases a name, lists the lease, commits it, and finds its record", async () => {
    const client = clientOf(api, protocol);
    const name = freshName();
    const begunMs = Date.now() - 1_000;
    const begun = await client.beginUpdate(begin([record(name, 1_042)]));
    expect(begun.cellId).toBe(1n);
    const { leases } = await client.listLeases({ cellId: 1n, createdAfter: timestampFromMs(begunMs) });
    const listed = leases.find(({ uuid }) => uuid?.value === begun.leaseUuid?.value);
    expect(Number(listed?.createdAt?.seconds)).toBeGreaterThanOrEqual(Math.floor(begunMs / 1_000));
    const leased = await client.getRecord(claimOf(name));
    expect(leased.record).toMatchObject({ status: Record_Status.LEASE_CREATING, leaseUuid: begun.leaseUuid });

    for (let twice = 0; twice < 2; twice += 1)
      expect(await client.commitUpdate({ cellId: 1n, leaseUuid: begun.leaseUuid })).toMatchObject({});
    const found = await client.getRecord(claimOf(name.toUpperCase()));
    expect(found).toMatchObject({
      record: {
        cellId: 1n,
        status: Record_Status.ACTIVE,
        metadata: record(name, 1_042),
      },
      cellInfo: { id: 1n, address: addressOf("1"), sessionPrefix: "cell-1" },
    });
    expect(found.record?.leaseUuid).toBeUndefined();
    expect(found.record?.metadata?.bucket).toBeUndefined();
    const range = { sourceIdGt: idBytes(1_041), sourceIdLte: idBytes(1_042) };
    const { records } = await client.listRecords({ cellId: 1n, sourceType: ROUTES_TABLE, ...range });
    expect(records.map(({ metadata }) => metadata?.claim?.claim.value)).toContain(name);
  });

  test("rolls a lease back, which frees its name", async () => {
    const client = clientOf(api, protocol);
    const name = freshName();
    const { leaseUuid } = await client.beginUpdate(begin([record(name)]));
    await client.rollbackUpdate({ cellId: 1n, leaseUuid });
    expect((await failure(client.commitUpdate({ cellId: 1n, leaseUuid }))).code).toBe(
      Code.FailedPrecondition,
    );
    expect((await failure(client.getRecord(claimOf(name)))).code).toBe(Code.NotFound);
  });

  test("a name that is taken is ALREADY_EXISTS, and the details say which record", async () => {
    const [name = ""] = await own([1], 2);
    const error = await failure(
      clientOf(api, protocol).beginUpdate(begin([record(freshName()), record(name)])),
    );
    expect(error.code).toBe(Code.AlreadyExists);
    expect(error.findDetails(ErrorInfoSchema)).toMatchObject([
      { reason: "ALREADY_EXISTS", domain: "leasehold", metadata: { "create_records[1]": "taken" } },
    ]);
  });

  test("a name that another lease holds is ALREADY_EXISTS, with a time to wait", async () => {
    const name = freshName();
    await clientOf(api, "Connect", "cell 2").beginUpdate(begin([record(name)], [], 2n));
    const error = await failure(clientOf(api, protocol).beginUpdate(begin([record(name)])));
    expect(error.code).toBe(Code.AlreadyExists);
    expect(error.findDetails(ErrorInfoSchema)).toMatchObject([
      { reason: "ABORTED", metadata: { "create_records[0]": "leased" } },
    ]);
    expect(error.findDetails(RetryInfoSchema)).toHaveLength(1);
  });

  test("a caller without a key, or with that of another cell, learns nothing", async () => {
    const request = begin([record(freshName())]);
    expect((await failure(clientOf(api, protocol, "").beginUpdate(request))).code).toBe(Code.Unauthenticated);
    expect((await failure(clientOf(api, protocol, "lhk_wrong").beginUpdate(request))).code).toBe(
      Code.Unauthenticated,
    );
    for (const key of ["cell 2", "router"] as const) {
      const client = clientOf(api, protocol, key);
      expect((await failure(client.beginUpdate(request))).code).toBe(Code.PermissionDenied);
      expect((await failure(client.listLeases({ cellId: 1n }))).code).toBe(Code.PermissionDenied);
      expect((await failure(client.listRecords({ cellId: 99n }))).code).toBe(Code.PermissionDenied);
    }
  });

  test("what is wrong with a request is named by its field of the protobuf", async () => {
    const client = clientOf(api, protocol);
    const fieldOf = async (request: object): Promise<string | undefined> => {
      const error = await failure(client.beginUpdate(request));
      expect(error.code).toBe(Code.InvalidArgument);
      return error.findDetails(BadRequestSchema)[0]?.fieldViolations[0]?.field;
    };
    const { claim: _, ...nameless } = record("x");
    expect(await fieldOf(begin([]))).toBe("body");
    expect(await fieldOf(begin([nameless]))).toBe("create_records[0].claim");
    expect(await fieldOf(begin([record(freshName()), record("")]))).toBe("create_records[1].claim");
    expect(await fieldOf(begin([{ ...nameless, bucket: { type: 1, value: "" } }]))).toBe(
      "create_records[0].bucket.value",
    );
    expect(await fieldOf(begin([{ ...record("x"), source: { type: ROUTES_TABLE } }]))).toBe(
      "create_records[0].source.rails_primary_key_id",
    );
    expect(await fieldOf(begin([], [{ ...record("x"), source: { type: 99 } }]))).toBe(
      "destroy_records[0].source.type",
    );
    expect(await fieldOf(begin([{ ...record("x"), bucket: { type: 1, value: "y" } }]))).toBe(
      "create_records[0].bucket",
    );
    const lease = await failure(client.commitUpdate({ cellId: 1n, leaseUuid: { value: "x" } }));
    expect(lease.findDetails(BadRequestSchema)[0]?.fieldViolations[0]?.field).toBe("lease_uuid");
    expect((await failure(client.commitUpdate({ cellId: 1n }))).rawMessage).toContain(
      "`lease_uuid` is required",
    );
    expect((await failure(client.listLeases({ cellId: 1n, limit: 0 }))).rawMessage).toContain(
      "`limit` must be",
    );
  });
});

test("[B2] an idempotency key makes a begin repeatable; without one, each makes a lease", async () => {
  const client = clientOf(api);
  const request = begin([record(freshName())]);
  const uuid = newUuid();
  const headers = { "idempotency-key": uuid };
  for (let twice = 0; twice < 2; twice += 1)
    expect((await client.beginUpdate(request, { headers })).leaseUuid?.value).toBe(uuid);
  const other = begin([record(freshName())]);
  expect((await failure(client.beginUpdate(other, { headers }))).findDetails(ErrorInfoSchema)).toMatchObject([
    { reason: "LEASE_ID_REUSED" },
  ]);
  expect((await failure(client.beginUpdate(request))).code).toBe(Code.AlreadyExists);
});

test("a name in both lists gets the new metadata, and errors name the record that was sent", async () => {
  const [name = "", other = ""] = await own([10, 11]);
  const client = clientOf(api);
  const { leaseUuid } = await client.beginUpdate(
    begin([record(freshName()), record(name.toUpperCase(), 12, 8)], [record(name, 10), record(other, 11)]),
  );
  await client.commitUpdate({ cellId: 1n, leaseUuid });
  await applied(api, name);
  const { record: found } = await client.getRecord(claimOf(name));
  expect(found?.metadata).toMatchObject({ subject: { id: 8n }, source: { railsPrimaryKeyId: idBytes(12) } });
  expect((await failure(client.getRecord(claimOf(other)))).code).toBe(Code.NotFound);

  const [foreign = ""] = await own([1], 2);
  const error = await failure(
    client.beginUpdate(begin([record(freshName()), record(foreign)], [record(foreign)])),
  );
  expect(error.code).toBe(Code.FailedPrecondition);
  expect(error.findDetails(ErrorInfoSchema)[0]?.metadata).toMatchObject({ "create_records[1]": "not_owner" });
});

test("a destroy of a name that nobody has changes nothing", async () => {
  const client = clientOf(api);
  const { leaseUuid } = await client.beginUpdate(begin([], [record(freshName())]));
  expect(await client.commitUpdate({ cellId: 1n, leaseUuid })).toMatchObject({});
});

test("a name that is twice in a list is refused, also if it is in the other list", async () => {
  const name = freshName();
  const client = clientOf(api);
  for (const request of [
    begin([record(name), record(name)]),
    begin([record(name)], [record(name), record(name)]),
  ])
    expect((await failure(client.beginUpdate(request))).rawMessage).toContain("is the same name as");
});

test("what is wrong with the cell and with the key of a begin is named as it was sent", async () => {
  const client = clientOf(api, "Connect", "operator");
  const request = begin([record(freshName())]);
  const headers = { "idempotency-key": "x" };
  expect((await failure(client.beginUpdate(request, { headers }))).rawMessage).toContain("`idempotency-key`");
  expect((await failure(client.beginUpdate({ ...request, cellId: 0n }))).rawMessage).toContain("`cell_id`");
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

test("an operator decides a lease with a reason", async () => {
  const { leaseUuid } = await clientOf(api).beginUpdate(begin([record(freshName())]));
  const operator = clientOf(api, "Connect", "operator");
  const lease = { cellId: 1n, leaseUuid };
  expect((await failure(operator.rollbackUpdate(lease))).rawMessage).toContain("`reason`");
  await operator.rollbackUpdate(lease, { headers: { "leasehold-reason": "the cell is gone" } });
});

test("a range of records never splits an id, and goes on until the end", async () => {
  const { maxPageItems } = { maxPageItems: 3 };
  const small = new Api({ LEASEHOLD_PAGE_ITEMS: "2", LEASEHOLD_MAX_PAGE_ITEMS: String(maxPageItems) });
  const names = await own([500, 501, 501, 501, 502, 503]);
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

test.each(protocols)("%s: pages of leases go on until the end", async (protocol) => {
  const client = clientOf(new Api(), protocol, "cell 2");
  const mine = new Set<string>();
  for (let made = 0; made < 5; made += 1)
    mine.add((await client.beginUpdate(begin([record(freshName())], [], 2n))).leaseUuid?.value ?? "");
  const seen: string[] = [];
  let next;
  do {
    const page = await client.listLeases({ cellId: 2n, limit: 2, ...(next === undefined ? {} : { next }) });
    expect(page.leases.length).toBeGreaterThan(0);
    seen.push(...page.leases.map(({ uuid }) => uuid?.value ?? ""));
    next = page.next;
  } while (next !== undefined);
  expect(new Set(seen).size).toBe(seen.length);
  for (const uuid of mine) expect(seen).toContain(uuid);
});

test("a call whose deadline has passed when it arrives makes no lease", async () => {
  const client = clientOf(api);
  const name = freshName();
  const headers = { "connect-timeout-ms": "0" };
  const error = await failure(client.beginUpdate(begin([record(name)]), { headers }));
  expect(error.code).toBe(Code.DeadlineExceeded);
  expect((await failure(client.getRecord(claimOf(name)))).code).toBe(Code.NotFound);
});

test("a deadline that passes during a begin leaves its outcome unknown, and says so", async () => {
  const call = vi.spyOn(InternalApi.prototype, "call").mockReturnValueOnce(new Promise(() => {}));
  const headers = { "connect-timeout-ms": "20" };
  const error = await failure(clientOf(api).beginUpdate(begin([record(freshName())]), { headers }));
  expect(call).toHaveBeenCalledOnce();
  vi.restoreAllMocks();
  expect(error.code).toBe(Code.DeadlineExceeded);
  expect(error.rawMessage).toContain("the outcome is unknown");
});

test.each(protocols)("%s: a page that nobody was given is refused", async (protocol) => {
  const client = clientOf(api, protocol);
  const typeUrl = "type.googleapis.com/google.protobuf.StringValue";
  const wrong = { typeUrl, value: Uint8Array.from([10, 99, 1]) };
  const error = await failure(
    protocol === "Connect JSON"
      ? client.listLeases({
          cellId: 1n,
          next: anyPack(StringValueSchema, create(StringValueSchema, { value: "x" })),
        })
      : client.listLeases({ cellId: 1n, next: wrong }),
  );
  expect(error.code).toBe(Code.InvalidArgument);
});

test.each(protocols)("%s: pages of records by next and limit, and not beside a range", async (protocol) => {
  const names = await own([900_001, 900_002, 900_003]);
  const client = clientOf(api, protocol);
  const seen: string[] = [];
  let next;
  do {
    const page = await client.listRecords({
      cellId: 1n,
      sourceType: ROUTES_TABLE,
      limit: 50,
      ...(next === undefined ? {} : { next }),
    });
    for (const { metadata } of page.records) {
      expect(metadata?.source?.railsPrimaryKeyId).toHaveLength(8);
      seen.push(String(metadata?.claim?.claim.value));
    }
    next = page.next;
  } while (next !== undefined);
  for (const name of names) expect(seen).toContain(name);
  const both = client.listRecords({
    cellId: 1n,
    sourceType: ROUTES_TABLE,
    limit: 2,
    sourceIdLte: idBytes(1),
  });
  expect((await failure(both)).rawMessage).toContain("`limit`");
});

test("types of buckets without a range filter what is listed", async () => {
  const [name = ""] = await own([910_001]);
  const client = clientOf(api, "Connect JSON");
  const list = { cellId: 1n, sourceType: ROUTES_TABLE, sourceIdGt: idBytes(910_000) };
  const valuesOf = async (bucketTypes: number[], range: object): Promise<unknown[]> =>
    (await client.listRecords({ ...list, ...range, bucketTypes })).records.map(
      ({ metadata }) => metadata?.bucket?.value,
    );
  expect(await valuesOf([1], {})).toContain(name);
  expect(await valuesOf([4], { sourceIdGt: new Uint8Array() })).toEqual([]);
});

test("ids that are no int64 are refused in an answer, and nothing is cut off", async () => {
  const name = freshName();
  const uuid = newUuid();
  const lease = `/v1/cells/1/leases/${uuid}`;
  const subject = { type: "GROUP", id: "a-text" };
  const creates = [{ ...claim(name), subject }];
  await api.json(201, "PUT", lease, { key: "cell 1", body: { creates } });
  await api.json(200, "POST", `${lease}/commit`, { key: "cell 1" });
  const error = await failure(clientOf(api).getRecord(claimOf(name)));
  expect([error.code, error.rawMessage]).toEqual([
    Code.FailedPrecondition,
    expect.stringContaining("a subject with an id that is no int64"),
  ]);
});

test("a fault is logged, and its text stays inside", async () => {
  const log = vi.spyOn(console, "log").mockImplementation(() => {});
  vi.spyOn(InternalApi.prototype, "call").mockRejectedValueOnce(new TypeError("it broke"));
  const error = await failure(clientOf(api).beginUpdate(begin([record(freshName())])));
  const lines = log.mock.calls.map(([line]) => String(line));
  vi.restoreAllMocks();
  expect([error.code, error.rawMessage]).toEqual([Code.Internal, expect.stringContaining("search its log")]);
  expect(lines.filter((line) => line.includes('"event":"fault"') && line.includes("it broke"))).toHaveLength(
    1,
  );
});
