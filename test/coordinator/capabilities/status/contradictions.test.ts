/** Tests of what a ledger remembers of contradictions with its cell. */
import { expect, test } from "vitest";
import { Cluster } from "../../../support/cluster.ts";
import { beginRequest, callerOf, decideRequest } from "../../../support/ops.ts";

const ledger = (c: Cluster) => c.ledger("1").object;
const seen = async (c: Cluster) => {
  const answer = await c.clock.runUntil(ledger(c).maintain({ ...c.envelope }));
  if (!answer.ok) throw new Error("the ledger did not answer");
  return answer.value.contradictions;
};
const decide = (c: Cluster, lease: string, outcome: "COMMITTED" | "ROLLED_BACK") =>
  c.clock.runUntil(ledger(c).decide(decideRequest(c.envelope, lease, outcome)));

test("[U4] a refused commit is counted before its answer, also through a crash", async () => {
  const c = await Cluster.start();
  const [lease, unknown] = [c.uuid(), c.uuid()];
  await c.clock.runUntil(ledger(c).begin(beginRequest(c.envelope, lease, ["a"])));
  await decide(c, lease, "ROLLED_BACK");
  await decide(c, lease, "ROLLED_BACK");
  expect(await seen(c)).toBeNull();
  expect(await decide(c, lease, "COMMITTED")).toMatchObject({ refusal: { reason: "LEASE_ROLLED_BACK" } });
  c.ledger("1").restart();
  const first = await seen(c);
  expect(first).toEqual({ count: 1, lastAtMs: c.clock.now() });
  // The clock stands still, and the time of the next one is later.
  expect(await decide(c, unknown, "COMMITTED")).toMatchObject({ refusal: { code: "NOT_FOUND" } });
  expect(await seen(c)).toEqual({ count: 2, lastAtMs: (first?.lastAtMs ?? 0) + 1 });
});

test("[U4] what a reconciliation has found is counted, and what an operator tries is not", async () => {
  const c = await Cluster.start({ limits: { statusEveryMs: 0 } });
  const report = (contradicted: number) => {
    const reconciliation = { outcome: "done", endedAgoMs: 0, counts: { contradicted } } as const;
    const sdk = { name: "leasehold", version: "0.1.0" };
    return c.clock.runUntil(
      ledger(c).reportStatus({ ...c.envelope, caller: callerOf(), sdk, reconciliation }),
    );
  };
  await report(0);
  const caller = { ...callerOf(), role: "operator" as const };
  await c.clock.runUntil(ledger(c).decide(decideRequest(c.envelope, c.uuid(), "COMMITTED", { caller })));
  expect(await seen(c)).toBeNull();
  await report(2);
  await report(0);
  expect(await seen(c)).toMatchObject({ count: 2 });
  await report(Number.MAX_SAFE_INTEGER);
  expect(await seen(c)).toMatchObject({ count: 1_000_000_000 });
});
