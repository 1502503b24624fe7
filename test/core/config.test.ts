import { expect, test } from "vitest";
import { readConfig } from "../../src/config.ts";

test("a missing variable has a default, and an invalid one is named in the error", () => {
  expect(readConfig({})).toMatchObject({
    shards: 4,
    placement: "hash1.shards4.canonical1",
    shardLocationHint: undefined,
    requestLog: "all",
  });
  expect(readConfig({ LEASEHOLD_SHARDS: "256", LEASEHOLD_SHARD_LOCATION_HINT: "weur" })).toMatchObject({
    shards: 256,
    shardLocationHint: "weur",
  });
  for (const shards of ["0", "257", "ten", "1.5", "", 16])
    expect(() => readConfig({ LEASEHOLD_SHARDS: shards })).toThrow("LEASEHOLD_SHARDS must be");
  expect(() => readConfig({ LEASEHOLD_SHARD_LOCATION_HINT: "mars" })).toThrow(
    "LEASEHOLD_SHARD_LOCATION_HINT must be one of",
  );
  expect(readConfig({ LEASEHOLD_REQUEST_LOG: "errors" })).toMatchObject({ requestLog: "errors" });
  expect(() => readConfig({ LEASEHOLD_REQUEST_LOG: "none" })).toThrow(
    "LEASEHOLD_REQUEST_LOG must be one of all, errors",
  );
  expect(() => readConfig({ LEASEHOLD_STALE_S: "abc" })).toThrow("LEASEHOLD_STALE_S");
});
