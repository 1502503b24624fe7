import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { chooseShards, shardsFault, storeShards } from "../../scripts/shards.ts";
import { placementOf } from "../../src/core/placement.ts";

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "leasehold-shards-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

test("a state keeps the number of shards that it was made with", async () => {
  const folder = newFolder();
  expect(await chooseShards(folder, undefined, true)).toBe("1");
  expect(await chooseShards(folder, "16", true)).toBe("16");
  await storeShards(folder, "16");
  expect(await chooseShards(folder, undefined, false)).toBe("16");
  expect(await chooseShards(folder, "8", false)).toBe("16");
});

test("the variable may have any number up to the present number of shards", () => {
  const placement = placementOf(5);
  for (const configured of [undefined, "2", "5"]) expect(shardsFault(configured, placement)).toBeUndefined();
  expect(shardsFault("16", placement)).toBe(
    "LEASEHOLD_SHARDS is 16, but the deployment has 5 shards; leave out the variable, and change the " +
      "number with `leasehold shards grow`",
  );
});

test("a state whose number of shards is missing or unreadable is refused", async () => {
  const folder = newFolder();
  await expect(chooseShards(folder, undefined, false)).rejects.toThrow(
    /shards is missing; set LEASEHOLD_SHARDS to the number of shards that the state was made with$/,
  );
  expect(await chooseShards(folder, "4", false)).toBe("4");
  writeFileSync(join(folder, "shards"), "some");
  await expect(chooseShards(folder, undefined, false)).rejects.toThrow(
    /shards must contain the number of shards that the state was made with$/,
  );
});
