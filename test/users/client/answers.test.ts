import { describe, expect, it } from "vitest";
import { operations } from "../../../src/users/client/api-types.ts";
import type { Client } from "../../../src/users/client/index.ts";
import { checkShape } from "../../../src/users/client/problem.ts";
import { errorOf, fakeClient, granted, leaseOf, problem, UUID } from "./fake.ts";

describe("the outcome is unknown after", () => {
  it.each([
    {
      what: "a proxy's 404",
      reply: { status: 404, text: "<html>", headers: { "content-type": "text/html" } },
    },
    {
      what: "a 409 that is no problem document",
      reply: { status: 409, json: { code: "ABORTED" }, headers: { "content-type": "application/json" } },
    },
    { what: "a problem document without a code", reply: { status: 409, json: {} } },
    { what: "a problem document that is a list", reply: { status: 409, json: ["ABORTED"] } },
    { what: "a problem document that is cut off", reply: { status: 409, text: '{"code":"ABOR' } },
    { what: "a redirect", reply: { status: 302, text: "" } },
    { what: "a fault", reply: problem(500, "INTERNAL") },
    {
      what: "a gateway's fault",
      reply: { status: 502, text: "Bad Gateway", headers: { "content-type": "text/plain" } },
    },
    { what: "a success without a body", reply: { status: 204, text: "" } },
    { what: "another document", reply: { status: 200, json: { ok: true } } },
    { what: "null", reply: { status: 200, json: null } },
    { what: "a lease that is text", reply: { status: 200, json: { lease: "GRANTED" } } },
    { what: "an unknown state", reply: { status: 200, json: { lease: leaseOf("MAYBE") } } },
  ])("$what", async ({ reply }) => {
    const { client, sent } = fakeClient([reply], { retries: 1 });
    expect(await errorOf(client.leases.commit(UUID))).toMatchObject({
      code: "UNAVAILABLE",
      outcomeKnown: false,
      retryable: true,
    });
    expect(sent.length).toBeGreaterThan(0);
  });

  it.each(Object.keys(leaseOf("GRANTED")))("a lease without %s", async (field) => {
    const { [field]: _left, ...rest } = leaseOf("GRANTED");
    const { client } = fakeClient([{ status: 200, json: { lease: rest } }], { retries: 0 });
    const error = await errorOf(client.leases.commit(UUID));
    expect(error).toMatchObject({ code: "UNAVAILABLE", outcomeKnown: false });
    expect(error.message).toContain(`the answer.lease.${field} is not`);
  });
});

describe("after a read that fails, nothing may have been carried out", () => {
  const reads: Readonly<Record<string, (client: Client) => Promise<unknown>>> = {
    getLease: (client) => client.leases.get(UUID),
    listStaleLeases: (client) => client.leases.listStale().all(),
    lookupRecords: (client) => client.records.find({ type: "USERNAMES", value: "ada" }),
    exportRecords: (client) => Array.fromAsync(client.records.export({ sourceType: "RAILS_TABLE_USERS" })),
    listCells: (client) => client.cells.list().all(),
  };
  const replies = [problem(503, "UNAVAILABLE"), new Error("lost"), problem(503, "UNAVAILABLE")];

  it.each(Object.keys(reads))("%s", async (operation) => {
    const { client, sent } = fakeClient(replies, { retries: 2 });
    const error = await errorOf(reads[operation]?.(client) ?? Promise.resolve());
    expect(error).toMatchObject({ code: "UNAVAILABLE", outcomeKnown: true, retryable: true });
    expect(sent).toHaveLength(3);
  });
});

it("ignores unknown fields", async () => {
  const lease = {
    ...leaseOf("GRANTED"),
    colour: "red",
    counts: { creates: 1, destroys: 0, replaces: 0, missing: 0, moved: 1 },
  };
  const { client } = fakeClient([{ status: 200, json: { lease, more: true } }]);
  expect(await client.leases.get(UUID)).toEqual(lease);
});

it("passes on every field of a refusal, without malformed conflicts", async () => {
  const conflict = {
    list: "creates",
    index: 1,
    bucket: { type: "ROUTES", value: "a" },
    kind: "taken",
    owner: "other",
    retry_after_ms: 7,
  };
  const conflicts = [
    conflict,
    null,
    "a",
    {},
    { ...conflict, list: "others" },
    { ...conflict, index: "1" },
    { ...conflict, bucket: { type: "ROUTES" } },
  ];
  const { client } = fakeClient([
    problem(409, "ALREADY_EXISTS", { reason: "NEW", field: "creates[1]", conflicts }, { "retry-after": "2" }),
  ]);
  const error = await errorOf(client.leases.begin({}));
  expect({ ...error }).toMatchObject({
    code: "ALREADY_EXISTS",
    reason: "NEW",
    status: 409,
    field: "creates[1]",
    retryable: false,
    retryAfterMs: 2_000,
    conflicts: [conflict],
    requestId: "request-1",
    outcomeKnown: true,
  });
  expect(error.message).toBe("ALREADY_EXISTS.");
});

it.each(["-5", "Thu, 01 Jan 1970 00:00:00 GMT"])(
  "does not wait for a Retry-After in the past: %s",
  async (given) => {
    const { client } = fakeClient([problem(409, "ABORTED", {}, { "retry-after": given })]);
    expect((await errorOf(client.leases.begin({}))).retryAfterMs).toBe(0);
  },
);

it("finds the request id in the headers too, also of a fault", async () => {
  const headers = { "content-type": "text/html", "x-request-id": "request-2" };
  const { client } = fakeClient([{ status: 502, text: "", headers }], { retries: 0 });
  expect(await errorOf(client.leases.get(UUID))).toMatchObject({ status: 502, requestId: "request-2" });
});

it("names what broke, with its cause", async () => {
  const broken = new TypeError("fetch failed", { cause: new Error("connect ECONNREFUSED") });
  const { client } = fakeClient([broken], { retries: 0 });
  const error = await errorOf(client.leases.get(UUID));
  expect(error.message).toBe("getLease: TypeError: fetch failed (connect ECONNREFUSED)");
  expect(error.cause).toBe(broken);
});

describe("a shape", () => {
  it.each([
    ["string", 1, "the answer is not a string"],
    ["number", "1", "the answer is not a number"],
    ["boolean", null, "the answer is not a boolean"],
    [["string"], { length: 0 }, "the answer is not a list"],
    [["string"], ["a", 1], "the answer[1] is not a string"],
    [{ a: { b: "number" } }, { a: null }, "the answer.a is not an object"],
    [{ a: [{ b: "number" }] }, { a: [{ b: 1 }, {}] }, "the answer.a[1].b is not a number"],
  ] as const)("%j is not %j", (shape, json, message) => {
    expect(() => checkShape(json, shape)).toThrow(new TypeError(message));
  });

  it("of the kind any accepts everything", () => {
    for (const json of [undefined, null, 1, {}])
      expect(() => checkShape({ a: json }, { a: "any" })).not.toThrow();
  });

  it("exists for every operation", () => {
    // The shape of an export is "any", because its lines are of several kinds. A status may be null.
    const { exportRecords: _, getStatus: __, ...others } = operations;
    for (const { shape } of Object.values(others)) expect(() => checkShape({}, shape)).toThrow(TypeError);
    expect(() => checkShape(granted.json, operations.beginLease.shape)).not.toThrow();
  });
});
