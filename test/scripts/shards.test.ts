import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { keepShards, shardsOf } from "../../scripts/shards.ts";

test("a state keeps the number of shards it was made with, and one from before that has four", async () => {
  const folder = mkdtempSync(join(tmpdir(), "leasehold-shards-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  expect(await shardsOf(folder, undefined, true)).toBe("1");
  expect(await shardsOf(folder, undefined, false)).toBe("4");
  expect(await shardsOf(folder, "16", true)).toBe("16");
  await keepShards(folder, "16");
  expect(await shardsOf(folder, undefined, false)).toBe("16");
  writeFileSync(join(folder, "shards"), "some");
  await expect(shardsOf(folder, undefined, false)).rejects.toThrow("shards does not hold a number of shards");
  await keepShards(folder, "16").catch(() => {});
  // Another number is passed on: the deployment itself refuses it, and says why.
  expect(await shardsOf(folder, "8", false)).toBe("8");
});
