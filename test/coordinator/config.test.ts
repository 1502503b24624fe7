import { expect, test } from "vitest";
import { readConfig } from "../../src/coordinator/config.ts";

test("a missing variable has a default, and an invalid one is named in the error", () => {
  expect(readConfig({})).toMatchObject({
    initialShards: 16,
    shardLocationHint: undefined,
    requestLogShare: 0.01,
  });
  expect(readConfig({ LEASEHOLD_SHARDS: "256", LEASEHOLD_SHARD_LOCATION_HINT: "weur" })).toMatchObject({
    initialShards: 256,
    shardLocationHint: "weur",
  });
  for (const shards of ["0", "257", "ten", "1.5", "", 16])
    expect(() => readConfig({ LEASEHOLD_SHARDS: shards })).toThrow("LEASEHOLD_SHARDS must be");
  expect(() => readConfig({ LEASEHOLD_SHARD_LOCATION_HINT: "mars" })).toThrow(
    "LEASEHOLD_SHARD_LOCATION_HINT must be one of",
  );
  for (const [given, requestLogShare] of Object.entries({ errors: 0, "0": 0, "0.25": 0.25, "1": 1, all: 1 }))
    expect(readConfig({ LEASEHOLD_REQUEST_LOG: given })).toMatchObject({ requestLogShare });
  for (const given of ["none", "1.1", "-1", ".5", "1e-3", "5%"])
    expect(() => readConfig({ LEASEHOLD_REQUEST_LOG: given })).toThrow(
      "LEASEHOLD_REQUEST_LOG must be all, errors, or a share from 0 to 1 such as 0.01",
    );
  expect(() => readConfig({ LEASEHOLD_STALE_S: "abc" })).toThrow("LEASEHOLD_STALE_S");
});
