import { describe, expect, test } from "vitest";
import { runCron } from "../../../src/coordinator/cron/cron.ts";
import { begin, decide, env, envWith, expectD1ToMatch, startFleet, uuidOf } from "./fleet.ts";
import { inSlice } from "../../support/slice.ts";
import { faultyD1, type Fault } from "./faulty-d1.ts";

const smallPages = { LEASEHOLD_PULL_ROWS: "2" };

/** Makes five leases, three of them decided. D1 has an earlier state of two. */
async function prepare(): Promise<void> {
  await startFleet("1");
  await begin("1", uuidOf(1), "a");
  await begin("1", uuidOf(2), "b");
  await runCron(env, Date.now());
  await begin("1", uuidOf(3), "c");
  await begin("1", uuidOf(4), "d");
  await decide("1", uuidOf(1), "COMMITTED");
  await decide("1", uuidOf(3), "ROLLED_BACK");
  await decide("1", uuidOf(5), "ROLLED_BACK");
}

async function countExecutions(): Promise<number> {
  await prepare();
  const counting = faultyD1();
  await runCron({ ...counting.env, ...smallPages }, Date.now());
  return counting.asked();
}

describe("D1 fails at each of a run's executions", async () => {
  const executions = await countExecutions();

  test("the run has several pages", () => expect(executions).toBeGreaterThan(8));

  const faults: Fault[] = ["before", "after"];
  for (const fault of faults) {
    for (const at of inSlice([...Array(executions).keys()], 2)) {
      test(`once at ${at}, ${fault} it is carried out: the run still succeeds`, async () => {
        await prepare();
        const { env: faulty } = faultyD1((execution) => (execution === at ? fault : undefined));
        const report = await runCron({ ...faulty, ...smallPages }, Date.now());
        expect(report).toMatchObject({ error: null, cellsFailed: 0 });
        await expectD1ToMatch("1");
      });

      test(`from ${at} on, ${fault} it is carried out: the next run misses nothing`, async () => {
        await prepare();
        const { env: faulty } = faultyD1((execution) => (execution >= at ? fault : undefined));
        await runCron({ ...faulty, ...smallPages }, Date.now());
        await begin("1", uuidOf(6), "f");
        await runCron(envWith(smallPages), Date.now());
        await expectD1ToMatch("1");
      });
    }
  }
});
