/** The stand-in for D1, where its behaviour must equal D1's. */
import { afterEach, beforeEach, expect, test } from "vitest";
import { SqliteD1 } from "../../../src/hosts/node/d1.ts";
import { SqliteDatabase } from "../../../src/hosts/node/sqlite-database.ts";
import { migrateProjection } from "../../../src/hosts/node/migrations.ts";

let database: SqliteD1;

beforeEach(() => {
  const stored = new SqliteDatabase();
  migrateProjection(stored);
  database = new SqliteD1(stored);
});

afterEach(() => database.close());

const insert = (run: string) =>
  database
    .prepare("INSERT INTO cron_runs (started_at_ms, run_id, scheduled_at_ms) VALUES (?, ?, 0)")
    .bind(7, run);
const select = () => database.prepare("SELECT run_id, started_at_ms FROM cron_runs ORDER BY run_id");

test("statements return rows, and the number of rows that they changed", async () => {
  expect(await insert("a").run()).toMatchObject({ success: true, results: [], meta: { changes: 1 } });
  expect((await select().all()).results).toEqual([{ run_id: "a", started_at_ms: 7 }]);
  expect((await select().all()).meta.changes).toBe(0);
  expect(await select().raw()).toEqual([["a", 7]]);
  expect(await select().first()).toEqual({ run_id: "a", started_at_ms: 7 });
  expect(await select().first("started_at_ms")).toBe(7);
  expect(await database.prepare("SELECT 1 FROM cron_runs WHERE run_id = ?").bind("b").first()).toBeNull();
});

test("a batch is atomic", async () => {
  expect(
    (await database.batch([insert("a"), insert("b"), select()])).map(({ results }) => results.length),
  ).toEqual([0, 0, 2]);
  await expect(database.batch([insert("c"), insert("a")])).rejects.toThrow("UNIQUE");
  expect((await select().all()).results).toHaveLength(2);
});
