import { runInDurableObject } from "cloudflare:test";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { Env } from "../../../../../src/coordinator/env.ts";
import { runCron } from "../../../../../src/coordinator/cron/cron.ts";
import type { WallClock } from "../../../../../src/coordinator/runtime.ts";
import {
  listStale,
  type StaleLease,
  type StalePage,
  type StalePosition,
  type StaleQuery,
} from "../../../../../src/coordinator/capabilities/stale/edge/stale.ts";
import {
  begin,
  decide,
  deploymentOf,
  env,
  envelope,
  ledgerOf,
  startFleet,
  uuidOf,
} from "../../../cron/fleet.ts";
import { faultyD1 } from "../../../cron/faulty-d1.ts";
import { countingLedgers, withoutLedger } from "../../../cron/ledger-calls.ts";

const DAY_MS = 86_400_000;

beforeEach(() => startFleet("1", "2"));
afterEach(() => void vi.useRealTimers());

/** Ends the last timer. The others never end, so a busy machine makes no ledger unreachable. */
let endTimer = (): void => {};

const clock: WallClock = {
  now: () => Date.now(),
  after: (_, then) => {
    endTimer = then;
    return () => {};
  },
};

async function list(query: Partial<StaleQuery> = {}, from: Env = env): Promise<StalePage> {
  const listed = await listStale(
    { ...deploymentOf(from), clock },
    {
      olderThanS: 0,
      limit: 100,
      ...query,
    },
  );
  if (!listed.ok) throw new Error(listed.refusal.detail);
  return listed.value;
}

/** Reads all pages. */
async function listAll(query: Partial<StaleQuery>): Promise<StaleLease[][]> {
  const pages: StaleLease[][] = [];
  let after: StalePosition | null | undefined;
  do {
    const page = await list({ ...query, ...(after ? { after } : {}) });
    pages.push(page.leases);
    after = page.next;
  } while (after !== null);
  return pages;
}

const idsOf = (leases: readonly StaleLease[]): string[] => leases.map(({ lease }) => lease);

/** Inserts rows of outstanding leases into D1, granted in the first milliseconds of 1970. */
async function plant(cell: string, from: number, count: number): Promise<void> {
  await env.DB.prepare(
    `INSERT INTO open_leases (cell_id, created_position, uuid, created_at_ms, creates, destroys, replaces,
      missing)
     SELECT ?, value, 'planted', value, 1, 0, 0, 0 FROM json_each(?)`,
  )
    .bind(cell, JSON.stringify(Array.from({ length: count }, (_, n) => from + n)))
    .run();
}

describe("the stale listing", () => {
  test("lists granted leases of all cells, oldest first, confirmed, with their age", async () => {
    const now = Date.now();
    for (let n = 0; n < 4; n += 1) {
      vi.useFakeTimers({ toFake: ["Date"], now: now - (10 - n) * 3_600_000 });
      await begin(n % 2 === 0 ? "2" : "1", uuidOf(n), `name-${n}`, `other-${n}`);
    }
    vi.useFakeTimers({ toFake: ["Date"], now });
    await decide("1", uuidOf(1), "COMMITTED");
    await runCron(env, Date.now());
    const { leases, next, lastPulledAtMs } = await list();
    expect(idsOf(leases)).toEqual([uuidOf(0), uuidOf(2), uuidOf(3)]);
    expect(leases[0]).toEqual({
      lease: uuidOf(0),
      cell: "2",
      createdAtMs: now - 10 * 3_600_000,
      ageMs: 10 * 3_600_000,
      counts: { creates: 2, destroys: 0, replaces: 0, missing: 0 },
      confirmed: true,
    });
    expect(next).toBeNull();
    expect(lastPulledAtMs).toBe(now);
    expect(idsOf((await list({ olderThanS: 8 * 3_600 })).leases)).toEqual([uuidOf(0), uuidOf(2)]);
    expect(idsOf((await list({ cell: "1" })).leases)).toEqual([uuidOf(3)]);
    expect(await list({ cell: "3" })).toEqual({ leases: [], next: null, lastPulledAtMs: null });
  });

  test("[C8] leaves out a lease that its cell has renewed, until that is too long ago", async () => {
    const now = Date.now();
    vi.useFakeTimers({ toFake: ["Date"], now: now - 3_600_000 });
    await begin("1", uuidOf(0), "ada");
    await begin("1", uuidOf(1), "bob");
    vi.useFakeTimers({ toFake: ["Date"], now });
    await runCron(env, Date.now());
    const caller = { role: "cell" as const, keyId: "k", expiresAtMs: Infinity };
    const renewal = { ...envelope(), caller, lease: uuidOf(0), reason: "an import" };
    expect(await ledgerOf("1").renew(renewal)).toMatchObject({ ok: true });
    expect(idsOf((await list({ olderThanS: 600 })).leases)).toEqual([uuidOf(1)]);
    vi.useFakeTimers({ toFake: ["Date"], now: now + 600_000 });
    const { leases } = await list({ olderThanS: 600 });
    expect(idsOf(leases)).toEqual([uuidOf(0), uuidOf(1)]);
    expect(leases[0]).toMatchObject({ ageMs: 4_200_000, renewedAtMs: now });
  });

  test("leaves out leases decided since the last pull, and fills the page with later ones", async () => {
    for (let n = 0; n < 8; n += 1) await begin("1", uuidOf(n), `name-${n}`);
    await runCron(env, Date.now());
    for (const n of [0, 1, 2, 4]) await decide("1", uuidOf(n), n === 1 ? "ROLLED_BACK" : "COMMITTED");
    const first = await list({ limit: 3 });
    expect(idsOf(first.leases)).toEqual([uuidOf(3), uuidOf(5), uuidOf(6)]);
    const second = await list({ limit: 3, ...(first.next === null ? {} : { after: first.next }) });
    expect(idsOf(second.leases)).toEqual([uuidOf(7)]);
    expect(second.next).toBeNull();
  });

  test("has no empty last page if the remaining leases were decided", async () => {
    for (let n = 0; n < 4; n += 1) await begin("1", uuidOf(n), `name-${n}`);
    await runCron(env, Date.now());
    for (const n of [2, 3]) await decide("1", uuidOf(n), "COMMITTED");
    const page = await list({ limit: 2 });
    expect(idsOf(page.leases)).toEqual([uuidOf(0), uuidOf(1)]);
    expect(page.next).toBeNull();
  });

  test("lists every lease once for any page size, also within one millisecond", async () => {
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() });
    await Promise.all(
      Array.from({ length: 30 }, (_, n) => begin(n % 3 === 0 ? "1" : "2", uuidOf(n), `name-${n}`)),
    );
    await runCron(env, Date.now());
    const whole = idsOf((await list()).leases);
    expect(whole).toHaveLength(30);
    for (const limit of [1, 7, 10, 29, 30]) {
      const pages = await listAll({ limit });
      expect(pages.flatMap(idsOf)).toEqual(whole);
      expect(pages.every(({ length }) => length > 0)).toBe(true);
    }
    const ofCell = await listAll({ limit: 3, cell: "1" });
    expect(ofCell.flat()).toHaveLength(10);
    expect(ofCell.flat().every(({ cell }) => cell === "1")).toBe(true);
  });

  test("ends a page early if very many leases were decided, and the next page continues", async () => {
    await begin("1", uuidOf(1), "a");
    await runCron(env, Date.now());
    await plant("1", 1, 1_500);
    const decidedLedger = countingLedgers((cell, leases) =>
      cell === "1" ? leases.map((lease) => (lease === uuidOf(1) ? "GRANTED" : "COMMITTED")) : undefined,
    );
    const first = await list({ limit: 5 }, decidedLedger.env);
    expect(first).toMatchObject({ leases: [], next: { createdAtMs: 1_000 } });
    const second = await list(
      { limit: 5, ...(first.next === null ? {} : { after: first.next }) },
      decidedLedger.env,
    );
    expect(idsOf(second.leases)).toEqual([uuidOf(1)]);
    expect(second.next).toBeNull();
  });

  test("asks each ledger once per page", async () => {
    for (let n = 0; n < 6; n += 1) await begin(n % 2 === 0 ? "1" : "2", uuidOf(n), `name-${n}`);
    await runCron(env, Date.now());
    const counting = countingLedgers();
    await list({ limit: 6 }, counting.env);
    expect(counting.asked.toSorted()).toEqual(["1", "2"]);
  });

  test("lists a lease that was granted while a clock was ahead, as old as its ledger knows", async () => {
    const now = Date.now();
    vi.useFakeTimers({ toFake: ["Date"], now: now + 3_600_000 });
    await begin("1", uuidOf(1), "ahead");
    await runCron(env, Date.now());
    vi.useFakeTimers({ toFake: ["Date"], now });
    await runCron(env, Date.now());
    expect(idsOf((await list({ olderThanS: 600 })).leases)).toEqual([]);
    vi.useFakeTimers({ toFake: ["Date"], now: now + 700_000 });
    expect((await list({ olderThanS: 600 })).leases).toMatchObject([
      { lease: uuidOf(1), createdAtMs: now, ageMs: 700_000, confirmed: true },
    ]);
  });

  test("does not ask an unreachable ledger again", async () => {
    await plant("2", 1, 1);
    await plant("1", 2, 250);
    await plant("2", 300, 1);
    const counting = countingLedgers((cell, leases) => {
      if (cell === "2") throw new Error("the object was reset");
      return leases.map(() => "COMMITTED");
    });
    const { leases } = await list({ limit: 5 }, counting.env);
    expect(leases).toMatchObject([
      { cell: "2", createdAtMs: 1, confirmed: false },
      { cell: "2", createdAtMs: 300, confirmed: false },
    ]);
    expect(counting.asked.filter((cell) => cell === "2")).toHaveLength(1);
  });

  test("lists the leases of an unreachable ledger as unconfirmed", async () => {
    await begin("1", uuidOf(1), "a");
    await begin("2", uuidOf(2), "b");
    await runCron(env, Date.now());
    await decide("1", uuidOf(1), "COMMITTED");
    for (const how of ["fails", "hangs"] as const) {
      const unreachable = withoutLedger("1", how, how === "hangs" ? () => endTimer() : undefined);
      const { leases } = await list({}, unreachable);
      expect(leases.map(({ lease, confirmed }) => [lease, confirmed])).toEqual([
        [uuidOf(1), false],
        [uuidOf(2), true],
      ]);
    }
  });

  test("leaves out a lease that its ledger does not have", async () => {
    await begin("1", uuidOf(1), "a");
    await begin("1", uuidOf(2), "b");
    await runCron(env, Date.now());
    await runInDurableObject(
      ledgerOf("1"),
      (_, state) => void state.storage.sql.exec("DELETE FROM lease WHERE lease = ?", uuidOf(1)),
    );
    expect(idsOf((await list()).leases)).toEqual([uuidOf(2)]);
  });

  test("is refused while D1 is down", async () => {
    expect(
      await listStale(deploymentOf(faultyD1(() => "before").env), {
        olderThanS: 0,
        limit: 10,
      }),
    ).toMatchObject({
      ok: false,
      refusal: { code: "UNAVAILABLE" },
    });
  });

  test("tells from which time on it may be incomplete", async () => {
    expect((await list()).lastPulledAtMs).toBeNull();
    const now = Date.now();
    vi.useFakeTimers({ toFake: ["Date"], now: now - DAY_MS });
    await runCron(env, Date.now());
    vi.useFakeTimers({ toFake: ["Date"], now });
    await runCron(withoutLedger("1"), Date.now());
    expect((await list()).lastPulledAtMs).toBe(now - DAY_MS);
    expect((await list({ cell: "2" })).lastPulledAtMs).toBe(now);
  });
});
