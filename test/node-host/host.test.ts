/** The host as a whole: an object whose write fails. */
import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { v4 as newUuid } from "uuid";
import type { Ports } from "../../src/core/ports.ts";
import { Host } from "../../src/node-host/host.ts";
import { MemoryStore } from "../../src/node-host/object-store.ts";
import { SqliteDatabase } from "../../src/node-host/sqlite-database.ts";
import { TestClock } from "../../src/testing/clock.ts";
import { makeKeys } from "../../src/testing/keys.ts";

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
