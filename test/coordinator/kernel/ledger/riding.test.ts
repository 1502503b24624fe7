/** Tests of what decisions that wait for a begin (N1) must not delay, and of how many share a message. */
import { expect, test } from "vitest";
import type { Limits } from "../../../../src/common/limits.ts";
import type { Exchange } from "../../../../src/coordinator/kernel/messages.ts";
import { Cluster } from "../../../support/cluster.ts";
import { beginRequest, decideRequest, type OpSpec } from "../../../support/ops.ts";

const run = <T>(c: Cluster, work: Promise<T>): Promise<T> => c.clock.runUntil(work);
const ledger = (c: Cluster, cell = "1") => c.ledger(cell).object;

async function begun(c: Cluster, names: readonly (string | OpSpec)[]): Promise<string> {
  const lease = c.uuid();
  expect(await run(c, ledger(c).begin(beginRequest(c.envelope, lease, names)))).toMatchObject({ ok: true });
  return lease;
}

const decide = (c: Cluster, lease: string, outcome: "COMMITTED" | "ROLLED_BACK" = "COMMITTED") =>
  run(c, ledger(c).decide(decideRequest(c.envelope, lease, outcome)));

/** A ledger whose begins come so often that its decisions wait for them. */
async function busy(limits: Partial<Limits> = {}): Promise<Cluster> {
  const c = await Cluster.start({
    shards: 1,
    limits: { decisionWaitMs: 5, sweepAfterMs: 600_000, ...limits },
  });
  for (let n = 0; n < 20; n += 1) {
    await decide(c, await begun(c, [{ value: `warm-${n}`, scope: "s" }]));
    await c.pass(200);
  }
  return c;
}

const exchanges = (c: Cluster): Exchange[] =>
  c.messages("exchange").map(({ message }) => message as Exchange);

test("[N1] [M7] the decisions of a message end at most as many holds as it may have ops", async () => {
  const c = await busy({ messageOps: 1_000 });
  const leases: string[] = [];
  for (let n = 0; n < 10; n += 1)
    leases.push(
      await begun(
        c,
        Array.from({ length: 400 }, (_, nth) => `n${n}-${nth}`),
      ),
    );
  await Promise.all(leases.map((lease) => decide(c, lease)));
  await c.pass(2_000);
  expect(c.claims()).toHaveLength(20 + 4_000);
  expect(Math.max(...exchanges(c).map(({ decisions }) => decisions.length))).toBe(2);
});

test("[N1] begins at the same time count once, so decisions of a quiet cell wait for none", async () => {
  const c = await busy();
  for (let minute = 0; minute < 30; minute += 1) {
    const names = Array.from({ length: 6 }, (_, n) => `n${minute}-${n}`);
    await run(
      c,
      Promise.all(names.map((name) => ledger(c).begin(beginRequest(c.envelope, c.uuid(), [name])))),
    );
    await c.pass(60_000);
  }
  const lease = await begun(c, ["last"]);
  await decide(c, lease);
  await c.clock.pass(c.limits.decisionWaitMs);
  expect(c.holds().map((hold) => hold.lease)).not.toContain(lease);
});
