import { sql } from "drizzle-orm";
import { beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import type { Env } from "../../../src/coordinator/env.ts";
import { Database, causeOf } from "../../../src/coordinator/d1/database.ts";
import { projectionHealth } from "../../../src/coordinator/cron/health.ts";
import { missingMigrations, migrationNames } from "../../../src/coordinator/d1/migrations.ts";
import { wallClock } from "../../../src/coordinator/runtime.ts";
import { env, envWith, startFleet } from "../cron/fleet.ts";
import { faultyD1 } from "../cron/faulty-d1.ts";

beforeEach(() => startFleet());

const select = (database: Database) =>
  database.run("select", (orm) => orm.all<{ one: number }>(sql`SELECT 1 AS one`));

describe("access to D1", () => {
  test("retries a failed access once", async () => {
    const { env: faulty, asked } = faultyD1((execution) => (execution === 0 ? "after" : undefined));
    expect(await select(new Database(faulty))).toEqual({ ok: true, value: [{ one: 1 }] });
    expect(asked()).toBe(2);
  });

  test("gives a refusal with the cause, without the bound values", async () => {
    const refused = await new Database(env).run("broken", (orm) =>
      orm.all(sql`SELECT ${"secret-name"} FROM nowhere`),
    );
    expect(refused).toMatchObject({
      ok: false,
      refusal: { code: "UNAVAILABLE", detail: expect.stringContaining("no such table: nowhere") },
    });
    expect(JSON.stringify(refused)).not.toContain("secret-name");
  });

  test("has a timeout, and the same instance does not ask again after a stall", async () => {
    const { env: stalled, asked } = faultyD1((execution) => (execution < 2 ? "hang" : undefined));
    const database = new Database(stalled, { timeoutMs: 20 });
    expect(await select(database)).toMatchObject({ ok: false, refusal: { code: "UNAVAILABLE" } });
    expect(await select(database)).toMatchObject({ ok: false, refusal: { code: "UNAVAILABLE" } });
    expect(asked()).toBe(2);
    expect(await select(new Database(stalled))).toMatchObject({ ok: true });
  });

  test("gives a refusal if the binding is missing", async () => {
    expect(await select(new Database(envWith({ DB: undefined })))).toMatchObject({
      ok: false,
      refusal: { code: "UNAVAILABLE" },
    });
  });
});

describe("the stored cause of a failure", () => {
  test("ends before the first quotation mark, because a name may follow", () => {
    expect(causeOf({ cause: `Unexpected token 'x', "[[0,1,"secret-name"" is not valid JSON` })).toBe(
      "Unexpected token 'x',",
    );
  });
  test("has at most 200 characters", () => expect(causeOf({ cause: "x".repeat(1_000) })).toHaveLength(200));
});

describe("the health of D1", () => {
  const d1Health = async (of: Env): Promise<string> => (await projectionHealth(of, 8)).d1;

  test("is up if D1 has its tables", async () => expect(await d1Health(env)).toBe("up"));
  test("is down if D1 fails", async () => expect(await d1Health(faultyD1(() => "before").env)).toBe("down"));
  test("is down if D1 does not answer within a second", async () => {
    const after = vi.spyOn(wallClock, "after");
    onTestFinished(() => after.mockRestore());
    expect(await d1Health(faultyD1(() => "hang").env)).toBe("down");
    expect(after.mock.calls.map(([delayMs]) => delayMs)).toEqual([1_000]);
  });
  test("has the last run that finished, and asks for failed cells only if that run had some", async () => {
    const add = (table: string, values: object): Promise<unknown> => {
      const names = Object.keys(values);
      const marks = names.map(() => "?").join();
      return env.DB.prepare(`INSERT INTO ${table} (${names.join()}) VALUES (${marks})`)
        .bind(...Object.values(values))
        .run();
    };
    const up = { d1: "up", missingMigrations: [] };
    expect(await projectionHealth(env, 2)).toEqual({ ...up, cron: null, suspects: [] });
    for (const [id, error] of [
      ["91", "down"],
      ["92", null],
      ["93", "down"],
      ["94", "down"],
    ])
      await add("cells", {
        cell_id: id,
        name: "",
        address: "",
        created_at_ms: 1,
        updated_at_ms: 1,
        last_error: error,
      });
    const run = { run_id: "r", scheduled_at_ms: 1 };
    await add("cron_runs", { ...run, started_at_ms: 1, finished_at_ms: 9, cells_failed: 0 });
    await add("cron_runs", { ...run, started_at_ms: 3 });
    expect(await projectionHealth(env, 2)).toEqual({
      ...up,
      cron: { finishedAtMs: 9, cellsFailed: 0 },
      suspects: [],
    });
    await add("cron_runs", { ...run, started_at_ms: 2, finished_at_ms: 8, cells_failed: 3 });
    const watched = faultyD1();
    const { cron, suspects } = await projectionHealth(watched.env, 2);
    expect(watched.asked()).toBe(3);
    expect(cron).toEqual({ finishedAtMs: 8, cellsFailed: 3 });
    expect(suspects).toHaveLength(2);
    expect(["91", "93", "94"]).toEqual(expect.arrayContaining(suspects));
    expect((await projectionHealth(env, 8)).suspects.toSorted()).toEqual(["91", "93", "94"]);
  });
  test("is down if D1 lacks a table that a migration has made", async () => {
    await env.DB.prepare("DROP TABLE cron_runs").run();
    expect(await d1Health(env)).toBe("down");
  });
  test("is outdated if D1 lacks a migration, even if a read needs it", async () => {
    await env.DB.prepare(
      "INSERT INTO cron_runs (started_at_ms, run_id, scheduled_at_ms, finished_at_ms)" +
        " VALUES (1, 'r', 1, 2)",
    ).run();
    await env.DB.prepare("DELETE FROM d1_migrations").run();
    const outdated = { d1: "outdated", missingMigrations: migrationNames, suspects: [] };
    expect(await projectionHealth(env, 8)).toEqual({
      ...outdated,
      cron: { finishedAtMs: 2, cellsFailed: 0 },
    });
    await env.DB.prepare("DROP TABLE cron_runs").run();
    expect(await projectionHealth(env, 8)).toEqual({ ...outdated, cron: null });
  });
});

describe("the missing migrations", () => {
  const missing = () => missingMigrations(new Database(env));

  test("are none if D1 has them all, and those of a newer version", async () => {
    await env.DB.prepare("INSERT INTO d1_migrations (name) VALUES ('9999_later.sql')").run();
    expect(await missing()).toEqual({ ok: true, value: [] });
  });
  test("are all if none was ever applied", async () => {
    await env.DB.prepare("DROP TABLE d1_migrations").run();
    expect(await missing()).toEqual({ ok: true, value: migrationNames });
  });
  test("are not known if D1 does not answer", async () =>
    expect(await missingMigrations(new Database(faultyD1(() => "before").env))).toMatchObject({
      ok: false,
      refusal: { code: "UNAVAILABLE" },
    }));
});
