/** Tests of what a cell of the SDK reports, against the coordinator for tests. */
import { PGlite } from "@electric-sql/pglite";
import { pgTable, serial, text } from "drizzle-orm/pg-core";
import { drizzle } from "drizzle-orm/pglite";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { claimable, createCell } from "../../../src/users/cell/index.ts";
import { postgres } from "../../../src/users/cell/postgres/index.ts";
import { SDK } from "../../../src/users/cell/sdk.ts";
import { createClient, type Client } from "../../../src/users/client/index.ts";
import { startTestCoordinator, type TestCoordinator } from "../../../src/users/testing/index.ts";

const things = pgTable("things", { id: serial().primaryKey(), name: text().notNull() });

let coordinator: TestCoordinator;
let database: PGlite;
let client: Client;

beforeEach(async () => {
  coordinator = await startTestCoordinator({ cells: ["1"] });
  database = new PGlite();
  await database.exec("CREATE TABLE things (id serial PRIMARY KEY, name text NOT NULL)");
  const { url, fetch, keys } = coordinator;
  client = createClient({ url, fetch, key: keys.cell("1"), cell: "1", backoffMs: 1 });
});

afterEach(async () => {
  await coordinator.close();
  await database.close();
});

async function startCell() {
  const table = claimable(things, {
    source: "RAILS_TABLE_USERS",
    subject: { type: "USER", id: "id" },
    attributes: { name: "USERNAMES" },
  });
  const cell = createCell({ client, database: postgres(drizzle(database)), tables: [table] });
  await cell.install();
  return cell;
}

test("a cell that reconciles reports it after the first run", async () => {
  const cell = await startCell();
  const reconciling = cell.startReconciling();
  await vi.waitFor(async () => expect(await client.cells.status()).not.toBeNull());
  await reconciling.stop();
  expect(await client.cells.status()).toMatchObject({
    cell_id: "1",
    sdk: SDK,
    reconciliation: {
      outcome: "done",
      is_full: true,
      counts: { processed: 0, rolled_back: 0 },
      stale_leases: 0,
      unreleased_deletions: 0,
    },
  });
});

test("a cell reports nothing if it is told so", async () => {
  const cell = await startCell();
  const { promise, resolve } = Promise.withResolvers<void>();
  const reconciling = cell.startReconciling({ reportStatus: false, onRun: () => resolve() });
  await promise;
  await reconciling.stop();
  expect(await client.cells.status()).toBeNull();
});
