/** What the Python cell remembers of its ledger, with the coordinator in memory. */
import { drizzle } from "drizzle-orm/node-postgres";
import { Pool } from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ledgerHistory, outstandingLeases } from "../../../src/cell/postgres/index.ts";
import { startTestCoordinator, type TestCoordinator } from "../../../src/testing/index.ts";
import type { TestedCoordinator } from "../../cell/scenarios/world.ts";
import { fresh } from "../../cell/scenarios/world.ts";
import { isSkipped } from "../../support/databases/available.ts";
import { startPostgres } from "../../support/databases/postgres.ts";
import { findPython } from "../../support/python.ts";
import { PythonBox } from "./python-box.ts";

const stops: (() => Promise<unknown>)[] = [];
let coordinator: TestCoordinator;
let databaseUrl: string;
let orm: ReturnType<typeof drizzle>;

/** Runs a process of the cell, and answers the history headers that it sent. */
async function withProcess(work: (box: PythonBox) => Promise<unknown>): Promise<string[]> {
  const tested: TestedCoordinator = {
    url: coordinator.url,
    fetch: (to, init) => coordinator.fetch(to, init),
    keys: coordinator.keys,
    stop: async () => {},
  };
  const box = await PythonBox.start("1", tested, databaseUrl);
  try {
    await work(box);
    return box.proxy.histories;
  } finally {
    await box.close();
  }
}

const add = (box: PythonBox): Promise<unknown> =>
  box.transaction([["insert", "organizations", { path: fresh("path") }]]);

const saved = () =>
  orm
    .select({ incarnation: ledgerHistory.incarnation, position: ledgerHistory.position })
    .from(ledgerHistory);

describe.skipIf(isSkipped("PostgreSQL") || findPython() === undefined)("the history of the ledger", () => {
  beforeAll(async () => {
    coordinator = await startTestCoordinator();
    stops.push(() => coordinator.close());
    const server = await startPostgres();
    stops.push(() => server.stop());
    databaseUrl = server.url(await server.createDatabase());
    const pool = new Pool({ connectionString: databaseUrl, max: 2 });
    stops.push(() => pool.end());
    orm = drizzle(pool);
    await orm.execute("CREATE TABLE organizations (id serial PRIMARY KEY, path text NOT NULL)");
    await withProcess((box) => box.install());
  });

  afterAll(async () => {
    for (const stop of stops.toReversed()) await stop();
  });

  test("[L7] a process sends what it has seen, and the next process sends what it has stored", async () => {
    const first = await withProcess(async (box) => {
      await add(box);
      await add(box);
      await box.saveHistory();
    });
    // The first of its four calls has nothing to send.
    expect(first).toHaveLength(3);
    const [point] = await saved();
    const [second] = await withProcess(add);
    expect(second).toBe(`${point?.incarnation}.${point?.position}`);
  });

  test("[L7] a point is dropped only when an answer to it had a newer incarnation", async () => {
    const [before] = await saved();
    await coordinator.restart();
    await withProcess(async (box) => {
      for (let count = 0; count < 3; count += 1) await add(box);
      await box.saveHistory();
    });
    const after = await saved();
    expect(after).toHaveLength(1);
    expect(after[0]?.incarnation).toBeGreaterThan(before?.incarnation ?? Infinity);
  });

  test("[L7] a ledger that does not have the stored point stops the cell, and nothing is saved", async () => {
    const [point] = await saved();
    await orm.update(ledgerHistory).set({ position: (point?.position ?? 0) + 1_000_000 });
    await withProcess(async (box) => {
      await expect(add(box)).rejects.toMatchObject({ code: "UNAVAILABLE" });
      await expect(box.reconcile({ full: true, staleS: 0 })).rejects.toMatchObject({ code: "UNAVAILABLE" });
    });
    expect(await orm.select().from(outstandingLeases)).toEqual([]);
  });
});
