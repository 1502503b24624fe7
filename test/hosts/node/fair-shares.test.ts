/** The fair share of each caller, where Node runs the Worker and all objects in one thread. */
import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { Host } from "../../../src/hosts/node/host.ts";
import { MemoryStore } from "../../../src/hosts/node/object-store.ts";
import { SqliteDatabase } from "../../../src/hosts/node/sqlite-database.ts";
import { TestClock } from "../../../src/users/testing/clock.ts";
import { makeKeys } from "../../../src/users/testing/coordinator.ts";
import { Client } from "../../suites/conformance/client.ts";
import { orderOfBegins } from "../../suites/heavy-begins.ts";

test("[M8] while large begins wait, that of another cell is the next or next but one", async () => {
  const secret = randomBytes(32).toString("hex");
  const clock = new TestClock();
  const host = new Host({
    clock,
    log: () => {},
    variables: { LEASEHOLD_SIGNING_SECRET: secret, LEASEHOLD_SHARDS: "4" },
    store: () => new MemoryStore(),
    d1: new SqliteDatabase(),
  });
  const keys = await makeKeys(secret, ["1", "2"], clock.now(), 3_600);
  const api = new Client({
    url: "http://localhost",
    fetch: (url, init) => host.dispatch(new Request(url, init)),
    keyOf: (name) => (name === "operator" ? keys.operator : keys.cell(name.replace("cell ", ""))),
  });
  for (const cell of ["1", "2"]) {
    const body = { cell_id: cell, name: `Cell ${cell}`, address: `https://cell-${cell}.test` };
    await api.json(201, "POST", "/v1/admin/cells", { body });
  }
  const order = await orderOfBegins(api, host.env);
  expect(order).toHaveLength(21);
  expect(order.indexOf("2")).toBeLessThanOrEqual(2);
  host.close();
  clock.stop();
});
