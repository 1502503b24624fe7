import { beforeEach, describe, expect, test } from "vitest";
import { runCron } from "../../../src/coordinator/cron/cron.ts";
import { begin, decide, env, startFleet, uuidOf } from "./fleet.ts";
import { faultyD1, isPage, type Execution } from "./faulty-d1.ts";

const LEASES = 40;
const HOUR_MS = 3_600_000;
/** When the hour of the test's runs begins. */
let hourMs: number;

beforeEach(async () => {
  const nowMs = Date.now();
  hourMs = nowMs - (nowMs % HOUR_MS);
  await startFleet("1");
});

const all = (work: (n: number) => Promise<unknown>): Promise<unknown> =>
  Promise.all(Array.from({ length: LEASES }, (_, n) => work(n)));

/** The run at a minute. The first run of each hour does more than the others. */
const runAt = (minute: number): number => hourMs + minute * 60_000;

/** Counts the rows that one run writes: those of leases, and the rest. */
async function countRun(
  variables: Record<string, string> = {},
  scheduledAtMs = runAt(30),
): Promise<{ leases: number; executions: number; rest: number }> {
  const { env: counted, done } = faultyD1();
  await runCron({ ...counted, ...variables }, scheduledAtMs);
  const rows = (executions: Execution[]): number =>
    executions.reduce((sum, { rowsWritten }) => sum + rowsWritten, 0);
  const pages = done.filter(isPage);
  // A page may also write the point of the ledger.
  const points = pages.filter(({ sql }) => sql.some((text) => text.startsWith("UPDATE cells"))).length;
  return {
    leases: rows(pages) - points,
    executions: done.length,
    rest: rows(done) - rows(pages) + points,
  };
}

describe("rows that D1 writes for a lease over its life", () => {
  test("none if it is decided before the first pull", async () => {
    await all((n) => begin("1", uuidOf(n), `name-${n}`));
    await all((n) => decide("1", uuidOf(n), "COMMITTED"));
    expect((await countRun()).leases).toBe(0);
  });

  test("3 if it is pulled while open: its row, the index, and the deletion", async () => {
    await all((n) => begin("1", uuidOf(n), `name-${n}`));
    expect((await countRun()).leases).toBe(2 * LEASES);
    await all((n) => decide("1", uuidOf(n), "COMMITTED"));
    expect((await countRun()).leases).toBe(LEASES);
  });

  test("none in a run without changes, which writes 3 other rows", async () => {
    await all((n) => begin("1", uuidOf(n), `name-${n}`));
    await runCron(env, runAt(30));
    const { leases, rest, executions } = await countRun();
    expect(leases).toBe(0);
    // The run's row is written twice, and the cell's row once. The number of statements doesn't depend on the
    // number of leases.
    expect(rest).toBe(3);
    expect(executions).toBeLessThanOrEqual(12);
  });

  test("none in the first run of an hour, which looks for old uses of credentials", async () => {
    await runCron(env, runAt(30));
    // The first run has made the ledger write for the first time, so this one gets its first point.
    await runCron(env, runAt(30));
    const other = await countRun();
    expect(await countRun({}, runAt(0))).toEqual({ ...other, executions: other.executions + 1 });
  });

  test("a page takes as many statements, however many leases it has", async () => {
    await all((n) => begin("1", uuidOf(n), `name-${n}`));
    const { executions } = await countRun();
    await startFleet("1");
    await all((n) => begin("1", uuidOf(n), `name-${n}`));
    const { executions: more } = await countRun({ LEASEHOLD_PULL_ROWS: "8" });
    // By default, all of them fit into one page.
    expect(more - executions).toBe(Math.ceil(LEASES / 8) - 1);
  });
});
