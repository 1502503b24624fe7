/** The limit of the names that a shard may hold, while names move (`heldNames`). */
import { expect, test } from "vitest";
import { no } from "../../../support/calls.ts";
import { Cluster } from "../../../support/cluster.ts";
import { begin, decide } from "../../../support/go-back.ts";
import { Growing, movingNames, rowsOn } from "../../../support/growing.ts";

test("[M6] [G4] names that move to a shard are held there above its limit", async () => {
  const c = await Cluster.start({ cells: ["1", "2"], shards: 1, limits: { heldNames: 40 } });
  const growing = new Growing(c);
  const names = movingNames(1, 2, 6);
  const lease = c.uuid();
  expect(await begin(c, "1", lease, names)).toMatchObject({ ok: true });
  Object.assign(c.limits, { heldNames: 4 });
  for (const [, shard] of c.shards) shard.restart();
  await growing.complete(2);
  expect(rowsOn(c, "hold").filter(({ shard }) => shard === 1)).toHaveLength(names.length);
  const [more = ""] = movingNames(1, 2, 7).slice(-1);
  expect(await begin(c, "2", c.uuid(), [more])).toEqual(
    no("RESOURCE_EXHAUSTED", { reason: "SHARD_HOLDS_FULL", retryAfterMs: 1_000 }),
  );
  await decide(c, "1", lease, "COMMITTED");
  await c.pass(1_000);
  expect(c.holds()).toEqual([]);
  expect(await begin(c, "2", c.uuid(), [more])).toMatchObject({ ok: true });
});
