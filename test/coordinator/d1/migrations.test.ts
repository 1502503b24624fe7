import { beforeAll, describe, expect, test } from "vitest";
import { runCron } from "../../../src/coordinator/cron/cron.ts";
import { listStale } from "../../../src/coordinator/capabilities/stale/edge/stale.ts";
import { begin, decide, deploymentOf, env, startFleet, uuidOf } from "../cron/fleet.ts";
import { faultyD1, type Execution } from "../cron/faulty-d1.ts";

beforeAll(() => startFleet("1"));

describe("the migrations", () => {
  test("make strict tables without rowids", async () => {
    const { results } = await env.DB.prepare("PRAGMA table_list").all<{
      name: string;
      type: string;
      wr: number;
      strict: number;
    }>();
    for (const name of ["cells", "keys", "open_leases", "cron_runs"])
      expect(results.find((table) => table.name === name)).toMatchObject({ wr: 1, strict: 1 });
  });
});

describe("the query plans", () => {
  test("a page looks up each lease that it deletes", async () => {
    await begin("1", uuidOf(1), "a");
    await runCron(env, Date.now());
    await decide("1", uuidOf(1), "COMMITTED");
    const { env: watched, done } = faultyD1();
    await runCron(watched, Date.now());
    expect(await planOf(done, "DELETE FROM open_leases")).toContain(
      "SEARCH open_leases USING PRIMARY KEY (cell_id=? AND created_position=?)",
    );
  });

  test("the list of cells reads the first leases of each cell in order", async () => {
    const { env: watched, done } = faultyD1();
    await runCron(watched, Date.now());
    const plan = await planOf(done, "cell_id = cells.cell_id");
    expect(plan).toContain("SEARCH open_leases USING PRIMARY KEY (cell_id=? AND created_position>?)");
    expect(plan).not.toContain("TEMP B-TREE");
  });

  test("marking the cells looks each one up", async () => {
    const { env: watched, done } = faultyD1();
    await runCron(watched, Date.now());
    expect(await planOf(done, "AS mark")).toContain("SEARCH cells USING PRIMARY KEY (cell_id=?)");
  });

  test("the stale listing reads the index in order, from any position, for one or all cells", async () => {
    const after = { createdAtMs: 1, cell: "1", createdPosition: 1 };
    for (const query of [{}, { cell: "1" }, { after }, { cell: "1", after }]) {
      const { env: watched, done } = faultyD1();
      await listStale(deploymentOf(watched), { olderThanS: 0, limit: 1, ...query });
      const plan = await planOf(done, "FROM open_leases");
      expect(plan.match(/SEARCH open_leases USING (?:COVERING )?INDEX open_leases_by_age/g)).toHaveLength(2);
      expect(plan).not.toContain("SCAN open_leases");
      expect(plan).not.toContain("TEMP B-TREE");
    }
  });
});

/** The query plan of the only statement that contains these words. */
async function planOf(done: readonly Execution[], words: string): Promise<string> {
  const [statement = "", ...others] = new Set(
    done.flatMap(({ sql }) => sql).filter((sql) => sql.includes(words)),
  );
  expect(others).toEqual([]);
  const bindings = Array.from(statement.matchAll(/\?/g), () => "1");
  const { results } = await env.DB.prepare(`EXPLAIN QUERY PLAN ${statement}`)
    .bind(...bindings)
    .all<{ detail: string }>();
  return results.map(({ detail }) => detail).join("\n");
}
