/** The protobuf services, through any client: the same answers and codes over every transport. */
import { create } from "@bufbuild/protobuf";
import { anyPack, StringValueSchema, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { Code, createClient, type Client as WireClient, type Transport } from "@connectrpc/connect";
import { v4 as newUuid } from "uuid";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  BadRequestSchema,
  ClaimService,
  ErrorInfoSchema,
  Record_Status,
  RetryInfoSchema,
} from "../../../src/coordinator/wire/protobuf.ts";
import type { Client, KeyName } from "../conformance/client.ts";
import { addressOf, applied, claim, freshName } from "../conformance/leases.ts";
import { begin, claimOf, failure, idBytes, own, record, ROUTES_TABLE } from "./messages.ts";

/** A coordinator with the cells 1 and 2. */
export interface WireCoordinator {
  api: Client;
  /** A transport that sends this key. The empty text sends none. */
  transport: (key: KeyName | "") => Transport;
  close?: () => Promise<void>;
  /** JSON can't have a `next` that is no message. */
  isJson?: boolean;
}
/** The coordinator of a suite, and its clients. */
export class Wire {
  readonly coordinator: WireCoordinator;

  constructor(coordinator: WireCoordinator) {
    this.coordinator = coordinator;
  }

  get api(): Client {
    return this.coordinator.api;
  }

  clientOf(key: KeyName | "" = "cell 1"): WireClient<typeof ClaimService> {
    return createClient(ClaimService, this.coordinator.transport(key));
  }

  ownIds(ids: readonly number[], cell = 1): Promise<string[]> {
    return own(this.api, this.clientOf(`cell ${cell}`), ids, cell);
  }
}

/** What a transport could change: messages, headers, pages, and the codes and details of errors. */
export function transportSuite(title: string, start: () => Promise<WireCoordinator>): void {
  suiteOn(title, start, transportTests);
}

/** The whole service. Requests are read and carried out in the same way over every transport. */
export function wireSuite(title: string, start: () => Promise<WireCoordinator>): void {
  suiteOn(title, start, (started) => {
    transportTests(started);
    serviceTests(started);
  });
}

export function suiteOn(
  title: string,
  start: () => Promise<WireCoordinator>,
  declare: (started: () => Wire) => void,
): void {
  describe(title, () => {
    let wire: Wire;
    beforeAll(async () => {
      wire = new Wire(await start());
    });
    afterAll(() => wire.coordinator.close?.());
    declare(() => wire);
  });
}

function transportTests(started: () => Wire): void {
  test("leases a name, lists the lease, commits it, and finds its record", async () => {
    const wire = started();
    const client = wire.clientOf();
    const name = freshName();
    const begunMs = Date.now() - 1_000;
    const begun = await client.beginUpdate(begin([record(name, 1_042)]));
    expect(begun.cellId).toBe(1n);
    const { leases } = await client.listLeases({ cellId: 1n, createdAfter: timestampFromMs(begunMs) });
    const listed = leases.find(({ uuid }) => uuid?.value === begun.leaseUuid?.value);
    expect(Number(listed?.createdAt?.seconds)).toBeGreaterThanOrEqual(Math.floor(begunMs / 1_000));
    const leased = await client.getRecord(claimOf(name));
    expect(leased.record).toMatchObject({
      status: Record_Status.LEASE_CREATING,
      leaseUuid: begun.leaseUuid,
    });

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

  test("[W5] a name that is taken is ALREADY_EXISTS, and the details say which record", async () => {
    const wire = started();
    const [name = ""] = await wire.ownIds([1], 2);
    const error = await failure(wire.clientOf().beginUpdate(begin([record(freshName()), record(name)])));
    expect(error.code).toBe(Code.AlreadyExists);
    expect(error.findDetails(ErrorInfoSchema)).toMatchObject([
      { reason: "ALREADY_EXISTS", domain: "leasehold", metadata: { "create_records[1]": "taken" } },
    ]);
  });

  test("[W5] a name that another lease holds is ALREADY_EXISTS, with a time to wait", async () => {
    const wire = started();
    const name = freshName();
    await wire.clientOf("cell 2").beginUpdate(begin([record(name)], [], 2n));
    const error = await failure(wire.clientOf().beginUpdate(begin([record(name)])));
    expect(error.code).toBe(Code.AlreadyExists);
    expect(error.findDetails(ErrorInfoSchema)).toMatchObject([
      { reason: "ABORTED", metadata: { "create_records[0]": "leased" } },
    ]);
    expect(error.findDetails(RetryInfoSchema)).toHaveLength(1);
  });

  test("[W1] a caller without a key, or with that of another cell, learns nothing", async () => {
    const wire = started();
    const request = begin([record(freshName())]);
    expect((await failure(wire.clientOf("").beginUpdate(request))).code).toBe(Code.Unauthenticated);
    expect((await failure(wire.clientOf("lhk_wrong").beginUpdate(request))).code).toBe(Code.Unauthenticated);
    for (const key of ["cell 2", "router"] as const) {
      const client = wire.clientOf(key);
      expect((await failure(client.beginUpdate(request))).code).toBe(Code.PermissionDenied);
      expect((await failure(client.listLeases({ cellId: 1n }))).code).toBe(Code.PermissionDenied);
      expect((await failure(client.listRecords({ cellId: 99n }))).code).toBe(Code.PermissionDenied);
    }
  });

  test("[W3] [B2] an idempotency key makes a begin repeatable; without one, each is new", async () => {
    const wire = started();
    const client = wire.clientOf();
    const request = begin([record(freshName())]);
    const uuid = newUuid();
    const headers = { "idempotency-key": uuid };
    for (let twice = 0; twice < 2; twice += 1)
      expect((await client.beginUpdate(request, { headers })).leaseUuid?.value).toBe(uuid);
    const other = begin([record(freshName())]);
    expect(
      (await failure(client.beginUpdate(other, { headers }))).findDetails(ErrorInfoSchema),
    ).toMatchObject([{ reason: "LEASE_ID_REUSED" }]);
    expect((await failure(client.beginUpdate(request))).code).toBe(Code.AlreadyExists);
  });

  test("[W6] pages of leases go on until the end", async () => {
    const wire = started();
    const client = wire.clientOf("cell 2");
    const mine = new Set<string>();
    for (let made = 0; made < 5; made += 1)
      mine.add((await client.beginUpdate(begin([record(freshName())], [], 2n))).leaseUuid?.value ?? "");
    const seen: string[] = [];
    let next;
    do {
      const page = await client.listLeases({
        cellId: 2n,
        limit: 2,
        ...(next === undefined ? {} : { next }),
      });
      expect(page.leases.length).toBeGreaterThan(0);
      seen.push(...page.leases.map(({ uuid }) => uuid?.value ?? ""));
      next = page.next;
    } while (next !== undefined);
    expect(new Set(seen).size).toBe(seen.length);
    for (const uuid of mine) expect(seen).toContain(uuid);
  });

  test("a page that nobody was given is refused", async () => {
    const wire = started();
    const client = wire.clientOf();
    const typeUrl = "type.googleapis.com/google.protobuf.StringValue";
    const wrong = { typeUrl, value: Uint8Array.from([10, 99, 1]) };
    const error = await failure(
      wire.coordinator.isJson === true
        ? client.listLeases({
            cellId: 1n,
            next: anyPack(StringValueSchema, create(StringValueSchema, { value: "x" })),
          })
        : client.listLeases({ cellId: 1n, next: wrong }),
    );
    expect(error.code).toBe(Code.InvalidArgument);
  });
}

function serviceTests(started: () => Wire): void {
  test("gives the organization of an update to its claims, as their scope", async () => {
    const wire = started();
    const [kept, name] = [freshName(), freshName()];
    const scopeOf = async (value: string): Promise<unknown> => {
      const { json } = await wire.api.send("GET", `/v1/records/ROUTES/${value}`, { key: "cell 1" });
      return (json as { record: { scope?: string } }).record.scope;
    };
    const begun = await wire.clientOf().beginUpdate({ ...begin([record(kept, 1)]), organizationId: 9_970n });
    await wire.clientOf().commitUpdate({ cellId: 1n, leaseUuid: begun.leaseUuid });
    expect(await scopeOf(kept)).toBe("9970");
    const without = await wire.clientOf().beginUpdate(begin([record(name, 2)]));
    await wire.clientOf().commitUpdate({ cellId: 1n, leaseUuid: without.leaseUuid });
    expect(await scopeOf(name)).toBeUndefined();
  });

  test("rolls a lease back, which frees its name", async () => {
    const wire = started();
    const client = wire.clientOf();
    const name = freshName();
    const { leaseUuid } = await client.beginUpdate(begin([record(name)]));
    await client.rollbackUpdate({ cellId: 1n, leaseUuid });
    expect((await failure(client.commitUpdate({ cellId: 1n, leaseUuid }))).code).toBe(
      Code.FailedPrecondition,
    );
    expect((await failure(client.getRecord(claimOf(name)))).code).toBe(Code.NotFound);
  });

  test("what is wrong with a request is named by its field of the protobuf", async () => {
    const wire = started();
    const client = wire.clientOf();
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

  test("a name in both lists gets the new metadata, and errors name the record that was sent", async () => {
    const wire = started();
    const [name = "", other = ""] = await wire.ownIds([10, 11]);
    const client = wire.clientOf();
    const { leaseUuid } = await client.beginUpdate(
      begin([record(freshName()), record(name.toUpperCase(), 12, 8)], [record(name, 10), record(other, 11)]),
    );
    await client.commitUpdate({ cellId: 1n, leaseUuid });
    await applied(wire.api, name);
    const { record: found } = await client.getRecord(claimOf(name));
    expect(found?.metadata).toMatchObject({
      subject: { id: 8n },
      source: { railsPrimaryKeyId: idBytes(12) },
    });
    expect((await failure(client.getRecord(claimOf(other)))).code).toBe(Code.NotFound);

    const [foreign = ""] = await wire.ownIds([1], 2);
    const error = await failure(
      client.beginUpdate(begin([record(freshName()), record(foreign, 2)], [record(foreign)])),
    );
    expect(error.code).toBe(Code.FailedPrecondition);
    expect(error.findDetails(ErrorInfoSchema)[0]?.metadata).toMatchObject({
      "create_records[1]": "not_owner",
    });
  });

  test("a destroy of a name that nobody has changes nothing", async () => {
    const wire = started();
    const client = wire.clientOf();
    const { leaseUuid } = await client.beginUpdate(begin([], [record(freshName())]));
    expect(await client.commitUpdate({ cellId: 1n, leaseUuid })).toMatchObject({});
  });

  test("what is wrong with the cell and with the key of a begin is named as it was sent", async () => {
    const wire = started();
    const client = wire.clientOf("operator");
    const request = begin([record(freshName())]);
    const headers = { "idempotency-key": "x" };
    expect((await failure(client.beginUpdate(request, { headers }))).rawMessage).toContain(
      "`idempotency-key`",
    );
    expect((await failure(client.beginUpdate({ ...request, cellId: 0n }))).rawMessage).toContain("`cell_id`");
  });

  test("an operator decides a lease with a reason", async () => {
    const wire = started();
    const { leaseUuid } = await wire.clientOf().beginUpdate(begin([record(freshName())]));
    const operator = wire.clientOf("operator");
    const lease = { cellId: 1n, leaseUuid };
    expect((await failure(operator.rollbackUpdate(lease))).rawMessage).toContain("`reason`");
    await operator.rollbackUpdate(lease, { headers: { "leasehold-reason": "the cell is gone" } });
  });

  test("pages of records by next and limit, and not beside a range", async () => {
    const wire = started();
    const names = await wire.ownIds([900_001, 900_002, 900_003]);
    const client = wire.clientOf();
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

  test("ids that are no int64 are refused in an answer, and nothing is cut off", async () => {
    const wire = started();
    const name = freshName();
    const uuid = newUuid();
    const lease = `/v1/cells/1/leases/${uuid}`;
    const subject = { type: "NAMESPACE", id: "a-text" };
    const creates = [{ ...claim(name), subject }];
    await wire.api.json(201, "PUT", lease, { key: "cell 1", body: { creates } });
    await wire.api.json(200, "POST", `${lease}/commit`, { key: "cell 1" });
    const error = await failure(wire.clientOf().getRecord(claimOf(name)));
    expect([error.code, error.rawMessage]).toEqual([
      Code.FailedPrecondition,
      expect.stringContaining("a subject with an id that is no int64"),
    ]);
  });
}
