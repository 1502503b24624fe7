/** A short slice of `npm run cell-crash`. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { isSkipped } from "../../support/databases/available.ts";
import { slice } from "../../support/slice.ts";
import { runLoad } from "./load.ts";

const SLOW_MS = 1_800_000;

describe.skipIf(isSkipped("PostgreSQL"))("two cells under load", () => {
  let folder = "";

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "leasehold-cell-crash-"));
  });
  afterAll(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }));

  test(
    "rows and claims agree after processes, PostgreSQL and the coordinator were killed",
    { timeout: SLOW_MS },
    async () => {
      const { complaints } = await runLoad({
        seed: slice,
        signUps: 100,
        names: 20,
        signUpsPerKill: 40,
        folder,
        log: () => {},
      });
      expect(complaints, `TEST_SLICE=${slice}`).toEqual([]);
    },
  );
});
