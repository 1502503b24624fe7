/** The host as a whole: an object whose write fails, one with unknown tables, and unknown messages. */
import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { v4 as newUuid } from "uuid";
import type { Ports } from "../../../src/coordinator/kernel/ports.ts";
import { FORMAT } from "../../../src/coordinator/kernel/formats.ts";
import * as kinds from "../../../src/coordinator/capabilities/index.ts";
import { META_TABLE } from "../../../src/coordinator/kernel/meta.ts";
import { Host, nodeSha256 } from "../../../src/hosts/node/host.ts";
import { MemoryStore } from "../../../src/hosts/node/object-store.ts";
import { SqliteDatabase } from "../../../src/hosts/node/sqlite-database.ts";
import { TestClock } from "../../../src/users/testing/clock.ts";
import { makeKeys } from "../../../src/users/testing/coordinator.ts";
import { STAMP } from "../../support/ops.ts";
import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex } from "@noble/hashes/utils.js";
import * as fc from "fast-check";
import { wordsOf } from "../../../src/common/sha256.ts";

test("[B5] an instance that ends itself is logged without names, and another one goes on", async () => {
  const secret = randomBytes(32).toString("hex");
  const lines: [string, object][] = [];
  const clock = new TestClock();
  let failures = 1;
  const failing = (name: string, ports: Ports): Ports => {
    if (name !== "cell-1") return ports;
    const { sql } = ports;
    return {
      ...ports,
      sql: {
        all: (...args) => sql.all(...args),
        flush: () => sql.flush(),
        sizeBytes: () => sql.sizeBytes(),
        transaction: (points, work) => {
          if (points.includes("grant") && failures-- > 0) throw new Error('no such column: "Ada"');
          return sql.transaction(points, work);
        },
      },
    };
  };
  const host = new Host({
    clock,
    log: (event, fields) => lines.push([event, fields]),
    variables: { LEASEHOLD_SIGNING_SECRET: secret, LEASEHOLD_SHARDS: "1", LEASEHOLD_REQUEST_LOG: "errors" },
    store: () => new MemoryStore(),
    d1: new SqliteDatabase(),
    portsOf: failing,
  });
  const keys = await makeKeys(secret, ["1"], clock.now(), 3_600);
  const call = async (method: string, path: string, key: string, body: object): Promise<number> => {
    const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
    const request = new Request(`http://localhost${path}`, { method, headers, body: JSON.stringify(body) });
    return (await host.dispatch(request)).status;
  };
  const cell = { cell_id: "1", name: "cell-1", address: "https://cell-1.test" };
  expect(await call("POST", "/v1/admin/cells", keys.operator, cell)).toBe(201);
  const path = `/v1/cells/1/leases/${newUuid()}`;
  const bucket = { type: "ROUTES", value: "Ada" };
  const by = { subject: { type: "USER", id: "1" }, source: { type: "RAILS_TABLE_USERS", id: "1" } };
  const creates = [{ bucket, ...by }];
  expect(await call("PUT", path, keys.cell("1"), { creates })).toBe(503);
  expect(lines).toContainEqual(["instance_ended", { object: "cell-1", error: "no such column:" }]);
  expect(await call("PUT", path, keys.cell("1"), { creates })).toBe(201);
  expect(JSON.stringify(lines)).not.toContain("Ada");
  host.close();
  clock.stop();
});

test("an object whose tables need newer code refuses all calls, and names the reason", async () => {
  const secret = randomBytes(32).toString("hex");
  const lines: [string, object][] = [];
  const clock = new TestClock();
  const stores = new Map<string, MemoryStore>();
  const store = (name: string): MemoryStore => {
    const made = stores.get(name) ?? new MemoryStore();
    stores.set(name, made);
    return made;
  };
  const shard = store("shard-0").database;
  shard.all(META_TABLE);
  shard.all("INSERT INTO meta (name, value) VALUES ('object_name', 'shard-0')");
  shard.all(`INSERT INTO meta (name, value) VALUES ('tables', '{"steps":9,"format":8}')`);
  store("shard-0").alarmAtMs = clock.now();
  const host = new Host({
    clock,
    log: (event, fields) => lines.push([event, fields]),
    variables: { LEASEHOLD_SIGNING_SECRET: secret, LEASEHOLD_SHARDS: "1", LEASEHOLD_REQUEST_LOG: "errors" },
    store,
    d1: new SqliteDatabase(),
  });
  const keys = await makeKeys(secret, ["1"], clock.now(), 3_600);
  const call = async (method: string, path: string, key: string, body?: object) => {
    const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
    const sent = body === undefined ? {} : { body: JSON.stringify(body) };
    const answer = await host.dispatch(new Request(`http://localhost${path}`, { method, headers, ...sent }));
    return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
  };
  const cell = { cell_id: "1", name: "cell-1", address: "https://cell-1.test" };
  const detail = expect.stringContaining(
    "shard-0 cannot be used: its tables need a newer version of Leasehold",
  );
  const refusal = { status: 503, body: { reason: "UNKNOWN_TABLES", detail } };
  // The directory answers, and the shard does not.
  expect(await call("POST", "/v1/admin/cells", keys.operator, cell)).toMatchObject(refusal);
  expect(lines).toContainEqual(["unknown_tables", { object: "shard-0", error: expect.any(String) }]);
  // Its alarm does not count as done.
  await expect.poll(() => lines.map(([event]) => event)).toContain("alarm_failed");
  expect(store("shard-0").alarmAtMs).not.toBeNull();
  expect(shard.all("SELECT name FROM sqlite_schema WHERE type = 'table'")).toEqual([{ name: "meta" }]);
  host.close();
  clock.stop();
});

test("[M9] every object refuses a message in a format that its code does not speak", async () => {
  const clock = new TestClock();
  const host = new Host({
    clock,
    log: () => {},
    variables: { LEASEHOLD_SIGNING_SECRET: randomBytes(32).toString("hex"), LEASEHOLD_SHARDS: "1" },
    store: () => new MemoryStore(),
    d1: new SqliteDatabase(),
  });
  const { CELL_LEDGER, CLAIM_SHARD, DIRECTORY } = host.env;
  const stubs = [
    [CELL_LEDGER.getByName("cell-1"), kinds.ledger.methods],
    [CLAIM_SHARD.getByName("shard-0"), kinds.shard.methods],
    [DIRECTORY.getByName("directory"), kinds.directory.methods],
  ] as const;
  const message = { ...STAMP, format: FORMAT + 1, placement: "" };
  for (const [stub, methods] of stubs)
    for (const method of Object.keys(methods)) {
      const answer = await (stub as unknown as Record<string, (sent: object) => Promise<object>>)[method]?.(
        message,
      );
      expect(answer, method).toMatchObject({ ok: false, refusal: { reason: "FORMAT_UNKNOWN" }, ...STAMP });
    }
  host.close();
  clock.stop();
});

const libraryOf = (text: string): string => bytesToHex(sha256(new TextEncoder().encode(text)));

/** The hash of Node must equal that of Workers, because both decide which shard has a name. */
test("both hashes are the same, also of characters that are not in UTF-8", () => {
  for (const text of ["", "1:ada@example.com", "\ud800", "a\udc00b", "x".repeat(100_000)])
    expect(nodeSha256(text)).toBe(libraryOf(text));
  fc.assert(
    fc.property(
      fc.string({ unit: "binary", maxLength: 300 }),
      (text) => nodeSha256(text) === libraryOf(text),
    ),
  );
});

test("the words of a hash are its bytes", () => {
  const bytes = sha256(new TextEncoder().encode("a"));
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  expect(wordsOf(nodeSha256("a"))).toEqual([0, 4, 8, 12].map((offset) => view.getUint32(offset)));
});
