/** A slice of the outages under load. `npm run test:deep` runs more of them. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { kinds } from "./outage-judge.ts";
import { OutageRun, type Failure } from "./outage.ts";
import { Stage } from "./stage.ts";

/** Longer than the patience of other tests, because a run has phases that a busy machine stretches. */
const SLOW_MS = 1_800_000;

/** Fewer than in the long runs, because other tests run at the same time. */
const PER_SECOND = 60;

const folder = mkdtempSync(join(tmpdir(), "leasehold-outage-"));
const stage = new Stage({ host: "start", folder });

beforeAll(() => stage.start());

afterAll(async () => {
  await stage.stop();
  rmSync(folder, { recursive: true, force: true });
});

async function runOf(failure: Failure, seed: number, variables: Record<string, string>): Promise<OutageRun> {
  const router = await stage.startRouter(variables);
  const common = { rounds: 1, perSecond: PER_SECOND, log: () => {} };
  const run = new OutageRun({ ...common, stage, router, failures: [failure], seed });
  await run.run();
  return run;
}

test(
  "[Q7] [Q8] a router whose coordinator is killed sends nobody to a wrong cell",
  { timeout: SLOW_MS },
  async () => {
    const { judge } = await runOf("kill", 1, {});
    expect(judge.complaints, stage.routerOutput()).toEqual([]);
    for (const kind of kinds) {
      expect(judge.answers("up", kind), kind).toBeGreaterThan(0);
      expect(judge.answers("down", kind), kind).toBeGreaterThan(0);
    }
    expect(judge.count("down", "warm", "right")).toBeGreaterThan(0);
  },
);

test("[Q8] finds a router that forgets names while its coordinator hangs", { timeout: SLOW_MS }, async () => {
  const { judge } = await runOf("freeze", 2, { ROUTER_GRACE_MS: "0" });
  expect(judge.count("down", "warm", "later")).toBeGreaterThan(0);
  expect(judge.complaints).toContainEqual(
    expect.stringMatching(/\(warm, coordinator down\) was answered 503/),
  );
});
