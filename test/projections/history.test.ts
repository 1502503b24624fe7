import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { defaultLimits } from "../../src/core/limits.ts";
import { runCron, type CronReport } from "../../src/projections/cron.ts";
import { defaultRuntime } from "../../src/runtime.ts";
import { faultyD1 } from "./faulty-d1.ts";
import {
  begin,
  countRows,
  decide,
  env,
  envWith,
  envelope,
  leasesInD1,
  leasesInLedger,
  ledgerOf,
  startFleet,
  uuidOf,
} from "./fleet.ts";

const DAY_MS = 86_400_000;

beforeEach(() => startFleet("1", "2"));
afterEach(() => void vi.useRealTimers());

const at = (ms: number): unknown => vi.useFakeTimers({ toFake: ["Date"], now: ms });

describe("history", () => {
  test("is pruned after its retention, and outstanding leases stay", async () => {
    const now = Date.now();
    at(now - 9 * DAY_MS);
    await begin("1", uuidOf(1), "a");
    await begin("1", uuidOf(2), "b");
    await begin("2", uuidOf(3), "c");
    await begin("2", uuidOf(4), "d");
    await decide("1", uuidOf(2), "COMMITTED");
    await decide("2", uuidOf(4), "ROLLED_BACK");
    await runCron(env, Date.now());
    at(now - 1 * DAY_MS);
    await decide("2", uuidOf(3), "COMMITTED");
    expect(await runCron(env, Date.now())).toMatchObject({ leasesPruned: 2 });
    vi.useRealTimers();
    expect(await runCron(env, Date.now())).toMatchObject({ leasesPruned: 0 });
    expect(await leasesInD1("1")).toMatchObject([{ uuid: uuidOf(1), state: "GRANTED" }]);
    expect(await leasesInD1("2")).toMatchObject([{ uuid: uuidOf(3), state: "COMMITTED" }]);
    expect(await countRows("cron_runs")).toBe(2);
  });

  test("lets the ledger forget an outcome only after D1 has it", async () => {
    const now = Date.now();
    at(now - 2 * DAY_MS);
    await begin("1", uuidOf(1), "a");
    await decide("1", uuidOf(1), "COMMITTED");
    vi.useRealTimers();
    await ledgerOf("1").maintain({ ...envelope(), pulledPosition: 0 });
    expect(await leasesInLedger("1")).toHaveLength(1);
    await runCron(env, Date.now());
    // The ledger may use the first call only to note that every shard applied the decision.
    await runCron(env, Date.now());
    expect(await leasesInLedger("1")).toHaveLength(0);
    expect(await leasesInD1("1")).toMatchObject([{ uuid: uuidOf(1), state: "COMMITTED" }]);
  });

  /** Inserts decided leases of one cell into D1, decided evenly over this time until now. */
  const plant = (cell: string, count: number, overMs: number): Promise<unknown> =>
    env.DB.prepare(
      `INSERT INTO leases (cell_id, created_position, uuid, state, position, created_at_ms, decided_at_ms,
         decided_by, creates, destroys, replaces, missing)
       SELECT ?1, at * 1024 + n, printf('%08d-0000-4000-8000-000000000000', n), 'COMMITTED',
         at * 1024 + n, at, at, 'cell', 1, 0, 0, 0
       FROM (SELECT value AS n, ?3 - (?2 - value) * ?4 / ?2 AS at FROM json_each(?5))`,
    )
      .bind(cell, count, Date.now(), overMs, JSON.stringify([...Array(count).keys()]))
      .run();

  const decidedAges = async (): Promise<{ cell: string; count: number; oldestMs: number }[]> => {
    const { results } = await env.DB.prepare(
      `SELECT cell_id AS cell, count(*) AS count, ?1 - min(decided_at_ms) AS oldestMs FROM leases
        WHERE decided_at_ms IS NOT NULL GROUP BY cell_id ORDER BY cell_id`,
    )
      .bind(Date.now())
      .all();
    return results as never;
  };

  test("takes at most 120 bytes in D1 for each decided lease", async () => {
    const size = async (): Promise<number> =>
      (await env.DB.prepare("UPDATE cells SET name = name").run()).meta.size_after;
    const before = await size();
    for (let cell = 1; cell <= 10; cell += 1) await plant(String(cell), 2_000, DAY_MS);
    const bytes = ((await size()) - before) / 20_000;
    expect(bytes).toBeGreaterThan(60);
    expect(bytes).toBeLessThan(120);
  });

  test("[S4] is pruned in steps, at least as fast as it is written", async () => {
    await runCron(env, Date.now());
    await plant("1", 60_000, 300 * DAY_MS);
    const { env: counted, done } = faultyD1();
    const { leasesPruned } = await runCron(counted, Date.now());
    expect(leasesPruned).toBeGreaterThan(58_000);
    const deletes = done.filter(({ sql }) => sql.some((text) => text.includes("DELETE FROM leases")));
    expect(deletes).toHaveLength(Math.ceil(leasesPruned / 10_000));
    // A page takes two statements. So with the same number of statements, far fewer rows can be written.
    expect(leasesPruned / deletes.length).toBeGreaterThan(defaultLimits.pullRows / 2);
  });

  test("[S4] is pruned before the pulls, for a part of the run's time", async () => {
    await begin("1", uuidOf(1), "a");
    await runCron(env, Date.now());
    await begin("1", uuidOf(2), "b");
    await plant("1", 60_000, 300 * DAY_MS);
    let aheadMs = 0;
    const { env: slow } = faultyD1((_, sql) => {
      if (sql.some((text) => text.includes("DELETE FROM leases"))) aheadMs += 8_000;
      return undefined;
    });
    const clock = { ...defaultRuntime.clock, now: () => Date.now() + aheadMs };
    expect(await runCron(slow, Date.now(), { ...defaultRuntime, clock })).toMatchObject({
      leasesPruned: 20_000,
      leasesUpserted: 1,
      cellsFailed: 0,
    });
  });

  test("[S4] is cut, the oldest first, while D1 is larger than its bound", async () => {
    const historyBytes = 1_000_000;
    await begin("1", uuidOf(1), "a");
    await runCron(env, Date.now());
    await plant("1", 12_000, 6 * DAY_MS);
    await plant("2", 3_000, 6 * DAY_MS);
    const logged: string[] = [];
    const log = (event: string): void => void logged.push(event);
    const run = (): Promise<CronReport> =>
      runCron(envWith({ LEASEHOLD_HISTORY_BYTES: String(historyBytes) }), Date.now(), {
        ...defaultRuntime,
        log,
      });
    const { leasesPruned } = await run();
    expect(logged).toContain("history_cut");
    const [first, second] = await decidedAges();
    expect((first?.count ?? 0) + (second?.count ?? 0) + leasesPruned).toBe(15_000);
    const { meta } = await env.DB.prepare("UPDATE cells SET name = name").run();
    expect(meta.size_after).toBeLessThanOrEqual(historyBytes);
    expect(meta.size_after).toBeGreaterThan(historyBytes / 2);
    // Both cells keep the same time, and the outstanding lease stays.
    expect(Math.abs((first?.oldestMs ?? 0) - (second?.oldestMs ?? 0))).toBeLessThan(DAY_MS);
    expect(await leasesInD1("1")).toContainEqual(expect.objectContaining({ uuid: uuidOf(1) }));
    logged.length = 0;
    expect(await run()).toMatchObject({ leasesPruned: 0, error: null });
    expect(logged).not.toContain("history_cut");
  });
});
