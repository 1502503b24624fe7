/** The Python cell and a coordinator, in memory, that has lost a part of its history or all of it. */
import { eq } from "drizzle-orm";
import { drizzle } from "drizzle-orm/node-postgres";
import { Pool } from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ledgerHistory } from "../../../src/users/cell/postgres/index.ts";
import { createClient } from "../../../src/users/client/index.ts";
import { startTestCoordinator, type TestCoordinator } from "../../../src/users/testing/index.ts";
import type { TestedCoordinator } from "../../users/cell/scenarios/drizzle.ts";
import { createTables, fresh } from "../../../src/users/cell/conformance/world.ts";
import { isSkipped } from "../../support/databases/available.ts";
import { startPostgres } from "../../support/databases/postgres.ts";
import { findPython } from "../../support/python.ts";
import { PythonBox } from "./python-box.ts";

const stops: (() => Promise<unknown>)[] = [];
let coordinator: TestCoordinator;
let databaseUrl: string;
let orm: ReturnType<typeof drizzle>;

/** Runs a process of the cell, and answers the history headers that it sent. */
async function withProcess(work: (box: PythonBox) => Promise<unknown>, cell = "1"): Promise<string[]> {
  const tested: TestedCoordinator = {
    url: coordinator.url,
    fetch: (to, init) => coordinator.fetch(to, init),
    keys: coordinator.keys,
    stop: async () => {},
  };
  const box = await PythonBox.start(cell, tested, databaseUrl);
  try {
    await work(box);
    return box.proxy.histories;
  } finally {
    await box.close();
  }
}

const add = (box: PythonBox): Promise<unknown> =>
  box.transaction([["insert", "organizations", { path: fresh("path") }]]);

const rows = async () => (await orm.execute("SELECT path FROM organizations")).rows;

const saved = (cell = "1") =>
  orm
    .select({ incarnation: ledgerHistory.incarnation, position: ledgerHistory.position })
    .from(ledgerHistory)
    .where(eq(ledgerHistory.cell, cell));

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
    await createTables({ dialect: "postgres" }, { query: async (text) => (await orm.execute(text)).rows });
    await orm.execute("CREATE TABLE notes (text text)");
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

  test("[L7] a point that no answer has confirmed is kept and sent", async () => {
    await withProcess(async (box) => {
      await add(box);
      await box.saveHistory();
    }, "2");
    const [point] = await saved("2");
    // Another process has seen an instance of the ledger that is lost.
    const unconfirmed = { cell: "2", incarnation: (point?.incarnation ?? 0) - 1, position: 5 };
    await orm.insert(ledgerHistory).values(unconfirmed);
    const sent = await withProcess(async (box) => {
      await add(box);
      await expect(add(box)).rejects.toMatchObject({ code: "UNAVAILABLE" });
    }, "2");
    expect(sent).toContain(`${unconfirmed.incarnation}.5`);
    expect(await saved("2")).toHaveLength(2);
  });

  test("[L7] a ledger that does not have the stored point stops the cell, and nothing is saved", async () => {
    const [before, [point]] = [await rows(), await saved()];
    const later = { position: (point?.position ?? 0) + 1_000_000 };
    await orm.update(ledgerHistory).set(later).where(eq(ledgerHistory.cell, "1"));
    await withProcess(async (box) => {
      await expect(add(box)).rejects.toMatchObject({ code: "UNAVAILABLE" });
      await expect(box.reconcile({ full: true, staleS: 0 })).rejects.toMatchObject({ code: "UNAVAILABLE" });
    });
    expect(await rows()).toEqual(before);
  });

  test("a transaction without names that PostgreSQL rolled back is not reported as saved", async () => {
    await withProcess(async (box) => {
      const ended = box.transaction([["sql", "INSERT INTO notes VALUES ('x')"], ["spoil"]]);
      await expect(ended).rejects.toMatchObject({ code: "NOT_SAVED" });
    });
  });

  test("[H6] a lost coordinator gets all claims back by the verification of the Python cell", async () => {
    await coordinator.close();
    coordinator = await startTestCoordinator();
    const { url, keys, fetch } = coordinator;
    const operator = createClient({ url, fetch, key: keys.operator });
    const shards = ["shard-0", "shard-1", "shard-2", "shard-3"];
    const reason = "the coordinator was lost";
    const isRefused = (box: PythonBox): Promise<void> =>
      expect(add(box)).rejects.toMatchObject({ code: "UNAVAILABLE" });
    const before = await rows();

    await withProcess(isRefused);
    for (const shard of shards)
      await operator.parts.reconcile(shard, { dry_run: false, declare_lost: true, reason });
    await operator.parts.reconcile("ledger-1", { dry_run: false, reason });
    await withProcess(async (box) => {
      // The shards grant only what verification begins.
      await isRefused(box);
      await box.reconcile({ full: true, orphanS: 0 });
      expect((await box.verify({ apply: true, maxChanges: 1_000 })).status).toBe("done");
    });
    for (const shard of shards) await operator.parts.finish(shard, { reason });

    expect(await rows()).toEqual(before);
    const names = before.map(({ path }) => ({ type: "ORGANIZATION_PATH", value: String(path) }) as const);
    const found = await operator.records.lookup(names);
    expect(found.map(({ record }) => [record?.cell_id, record?.status])).toEqual(
      names.map(() => ["1", "ACTIVE"]),
    );
    await withProcess(add);
  });
});
