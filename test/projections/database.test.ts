import { sql } from "drizzle-orm";
import { beforeEach, describe, expect, test } from "vitest";
import { Database } from "../../src/projections/database.ts";
import { causeOf } from "../../src/projections/failure.ts";
import { d1Health } from "../../src/projections/health.ts";
import { env, envWith, startFleet } from "./fleet.ts";
import { faultyD1 } from "./faulty-d1.ts";

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
  test("is up if D1 has its tables", async () => expect(await d1Health(env)).toBe("up"));
  test("is down if D1 fails", async () => expect(await d1Health(faultyD1(() => "before").env)).toBe("down"));
  test("is down if D1 does not answer within about a second", async () => {
    const askedAtMs = Date.now();
    expect(await d1Health(faultyD1(() => "hang").env)).toBe("down");
    expect(Date.now() - askedAtMs).toBeLessThan(3_000);
  });
  test("is down if D1 lacks a table", async () => {
    await env.DB.prepare("DROP TABLE cron_runs").run();
    expect(await d1Health(env)).toBe("down");
  });
});
