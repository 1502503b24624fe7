import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { slice } from "../../support/slice.ts";
import { killAll } from "../crash/server.ts";
import { runUpgrade } from "./run.ts";

const folder = mkdtempSync(join(tmpdir(), "upgrade-test-"));

afterAll(() => {
  killAll();
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
});

test("an upgrade under load, the way back, and the finish lose nothing", async () => {
  const options = { folder: join(folder, "mixed"), seed: slice, pace: { atOnce: 8 }, log: () => {} };
  const { load, complaints } = await runUpgrade(options);
  expect(complaints, `to repeat it: TEST_SLICE=${slice}`).toEqual([]);
  expect(load.leases).toBeGreaterThan(100);
});
