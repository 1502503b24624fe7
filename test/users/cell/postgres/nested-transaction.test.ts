import { eq } from "drizzle-orm";
import { afterAll, beforeAll, expect, test } from "vitest";
import { TestedCell, type TestedCoordinator, type TestedDatabase } from "../scenarios/drizzle.ts";
import { postgresDialect as dialect } from "../scenarios/postgres-dialect.ts";
import { pglite, testCoordinator } from "../scenarios/starts.ts";

const { organizations } = dialect.tables;
let coordinator: TestedCoordinator;
let database: TestedDatabase;

beforeAll(async () => {
  [coordinator, database] = await Promise.all([testCoordinator(), pglite()]);
});
afterAll(async () => {
  await database.stop();
  await coordinator.stop();
});

test("[L1] a nested transaction of drizzle that fails also undoes its names", async () => {
  const { cell, ...one } = await new TestedCell("1", dialect, coordinator, database).prepare();
  const kept = await cell.transaction((tx) => tx.insert(organizations, { path: "kept" }));
  one.network.forget();
  const undone = new Error("undone");
  await cell.transaction(async (tx) => {
    const inner = tx.db.transaction(async () => {
      await tx.insert(organizations, { path: "never" });
      await tx.update(organizations, eq(organizations.id, kept.id), { path: "moved" });
      throw undone;
    });
    await expect(inner).rejects.toThrow(undone);
  });
  expect(one.network.calls).toEqual([]);
  expect(await database.query("SELECT path FROM organizations")).toEqual([{ path: "kept" }]);
});
