/** Defines the tests of some scenarios: one test for each row of the matrix. */
import { describe, expect, test } from "vitest";
import { documented } from "./documented.ts";
import { missingRows, rowsOf } from "./matrix.ts";
import { play, prepareDatabases, record } from "./play.ts";
import { isInSlice } from "./slice.ts";
import { keyOf } from "./armed-fault.ts";
import type { Scenario } from "./scenarios.ts";

declare module "vitest" {
  interface TaskMeta {
    /** Read by the reporter. */
    repeated?: string[];
  }
}

/** Longer than other tests, because a busy machine repeats a row with longer timeouts. */
const SLOW_MS = 600_000;

export async function matrixSuite(scenarios: readonly Scenario[]): Promise<void> {
  await prepareDatabases();
  for (const scenario of scenarios) {
    const journal = await record(scenario);
    const rows = rowsOf(scenario, journal);

    describe.concurrent(scenario.title, () => {
      test("every write and every pair of writes has the required rows", () => {
        expect(journal.writes.filter(({ call }) => call === undefined).map(keyOf)).toEqual([]);
        expect(missingRows(journal, rows)).toEqual([]);
      });

      test("the writes are those that the documentation lists", () => {
        expect(journal.writes.map(({ label }) => label).toSorted()).toEqual(documented.get(scenario.title));
      });

      for (const row of rows.filter(isInSlice)) {
        test(`${scenario.rules} ${row.fault} at ${row.at}`, { timeout: SLOW_MS }, async ({ task }) => {
          task.meta.repeated = await play(scenario, row.arm);
        });
      }
    });
  }
}
