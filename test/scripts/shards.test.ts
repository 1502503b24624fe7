import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { storeShards, chooseShards } from "../../scripts/shards.ts";

test("a state keeps the number of shards it was made with, and one from before that has four", async () => {
  const folder = mkdtempSync(join(tmpdir(), "leasehold-shards-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  expect(await chooseShards(folder, undefined, true)).toBe("1");
  expect(await chooseShards(folder, undefined, false)).toBe("4");
  expect(await chooseShards(folder, "16", true)).toBe("16");
  await storeShards(folder, "16");
  expect(await chooseShards(folder, undefined, false)).toBe("16");
  writeFileSync(join(folder, "shards"), "some");
  await expect(chooseShards(folder, undefined, false)).rejects.toThrow(
    "shards does not hold a number of shards",
  );
  await storeShards(folder, "16").catch(() => {});
  // Another number is passed on: the deployment itself refuses it, and says why.
  expect(await chooseShards(folder, "8", false)).toBe("8");
});
