import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { runCron } from "../../src/projections/cron.ts";
import {
  begin,
  countRows,
  decide,
  env,
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

  test("is pruned in limited steps", async () => {
    await runCron(env, Date.now());
    const rows = (from: number): unknown =>
      env.DB.prepare(
        `INSERT INTO leases (cell_id, created_position, uuid, state, position, created_at_ms, decided_at_ms,
          creates, destroys, replaces, missing)
         SELECT '1', value, 'u', 'COMMITTED', value, 1, 1, 1, 0, 0, 0 FROM json_each(?)`,
      )
        .bind(JSON.stringify(Array.from({ length: 12_000 }, (_, n) => from + n)))
        .run();
    await rows(1);
    expect(await runCron(env, Date.now())).toMatchObject({ leasesPruned: 12_000 });
    for (let n = 0; n < 5; n += 1) await rows(1 + n * 12_000);
    expect(await runCron(env, Date.now())).toMatchObject({ leasesPruned: 50_000 });
    expect(await runCron(env, Date.now())).toMatchObject({ leasesPruned: 10_000 });
  });
});
