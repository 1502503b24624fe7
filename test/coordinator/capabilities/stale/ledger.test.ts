import { expect, test } from "vitest";
import { begin, decide } from "../../../support/calls.ts";
import { Cluster } from "../../../support/cluster.ts";

test("the stale listing learns whether a lease was decided, and nothing of an unknown one", async () => {
  const c = await Cluster.start({ shards: 1 });
  const lease = c.uuid();
  const createdAtMs = c.clock.now();
  await c.clock.runUntil(begin(c, "1", lease, ["Ada"]));
  c.clock.jump(5_000);
  await c.clock.runUntil(decide(c, "1", lease, "ROLLED_BACK"));
  const states = await c.clock.runUntil(
    c.ledger("1").object.leaseStates({ ...c.envelope, leases: [lease, c.uuid()] }),
  );
  expect(states).toEqual({
    ok: true,
    value: [{ state: "ROLLED_BACK", createdAtMs, renewedAtMs: null }, null],
  });
});
