import { expect, test } from "vitest";
import { shardsFault } from "../../../src/hosts/workerd/settings.ts";
import { placementOf } from "../../../src/coordinator/kernel/placement.ts";

test("the variable may have any number up to the present number of shards", () => {
  const placement = placementOf(5);
  for (const configured of [undefined, "2", "5"]) expect(shardsFault(configured, placement)).toBeUndefined();
  expect(shardsFault("16", placement)).toBe(
    "LEASEHOLD_SHARDS is 16, but the deployment has 5 shards; leave out the variable, and change the " +
      "number with `leasehold shards grow`",
  );
});
