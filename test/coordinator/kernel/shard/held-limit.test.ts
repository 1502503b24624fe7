/** The limit of the names that a shard may hold, and of the part that one cell may have (`heldNames`). */
import { expect, test } from "vitest";
import { defaultLimits, limitTable, type Limits } from "../../../../src/common/limits.ts";
import type { Outcome } from "../../../../src/coordinator/kernel/messages.ts";
import type { Result } from "../../../../src/coordinator/kernel/refusal.ts";
import { no } from "../../../support/calls.ts";
import { Cluster } from "../../../support/cluster.ts";
import { begin as beginAs, decide, own } from "../../../support/go-back.ts";
import { ownerOf } from "../../../support/lookup.ts";
import { beginRequest, decideRequest, type OpSpec } from "../../../support/ops.ts";

const FULL = no("RESOURCE_EXHAUSTED", { reason: "SHARD_HOLDS_FULL", retryAfterMs: 1_000 });

/** One cell may have half of the names. */
const start = (heldNames: number, limits: Partial<Limits> = {}, shards = 1): Promise<Cluster> =>
  Cluster.start({ cells: ["1", "2", "3"], shards, limits: { heldNames, ...limits } });

const destroy = (value: string): OpSpec => ({ kind: "destroy", value });

const begin = (c: Cluster, cell: string, names: (string | OpSpec)[]): Promise<Result<unknown>> =>
  beginAs(c, cell, c.uuid(), names);

/** Returns the id of a lease that was granted. */
async function granted(c: Cluster, cell: string, names: (string | OpSpec)[]): Promise<string> {
  const lease = c.uuid();
  expect(await beginAs(c, cell, lease, names)).toMatchObject({ ok: true });
  return lease;
}

const sizes = (c: Cluster): number => c.holds().length;

/** Lowers the limit under what the shards hold already, and starts their next instances with it. */
function lower(c: Cluster, heldNames: number): void {
  Object.assign(c.limits, { heldNames });
  for (const [, shard] of c.shards) shard.restart();
}

test("[M6] every batch fits into what one cell may hold on a shard", () => {
  const { heldNames, batchOps, leaseBytes } = limitTable;
  // Each 128 characters of a name count once more.
  expect(heldNames.min / 2).toBeGreaterThanOrEqual(batchOps.max + leaseBytes.max / 128);
  expect(defaultLimits.heldNames).toBe(100_000);
});

test("[M6] a shard refuses the names with which it would hold more than it may", async () => {
  const c = await start(8);
  await granted(c, "1", ["a1", "a2", "a3"]);
  await granted(c, "2", ["b1", "b2", "b3"]);
  expect(await begin(c, "3", ["c1", "c2", "c3"])).toEqual({
    ok: false,
    refusal: {
      code: "RESOURCE_EXHAUSTED",
      detail:
        "open leases hold as many names on a shard as it may have in all (8), or as one cell may " +
        "hold there (4); commit or roll back some of them, and retry",
      reason: "SHARD_HOLDS_FULL",
      retryAfterMs: 1_000,
    },
  });
  expect(sizes(c)).toBe(6);
  await granted(c, "3", ["c1", "c2"]);
  expect(await begin(c, "3", ["c3"])).toEqual(FULL);
});

test("[M6] one cell may hold half of the names of a shard, and other cells the rest", async () => {
  const c = await start(8);
  await granted(c, "1", ["a1", "a2"]);
  await granted(c, "1", ["a3", "a4"]);
  expect(await begin(c, "1", ["a5"])).toEqual(FULL);
  await granted(c, "2", ["b1", "b2", "b3", "b4"]);
  expect(await begin(c, "3", ["c1"])).toEqual(FULL);
  const metrics = c.shard(0).object.metrics(c.envelope);
  expect(await c.clock.runUntil(metrics)).toMatchObject({ value: { holds: 8, holdsOfOneCell: 4 } });
});

test("[M6] [B4] a batch that one shard refuses holds nothing on the others", async () => {
  const c = await start(4, {}, 2);
  const names = Array.from({ length: 40 }, (_, n) => `name-${n}`);
  const [first = [], second = []] = [0, 1].map((shard) =>
    names.filter((name) => beginRequest(c.envelope, "", [name]).ops[0]?.shard === shard),
  );
  await granted(c, "1", first.slice(0, 2));
  expect(await begin(c, "1", [...first.slice(2, 3), ...second.slice(0, 2)])).toEqual(FULL);
  await c.pass(1_000);
  expect(sizes(c)).toBe(2);
  await granted(c, "1", second.slice(0, 2));
});

test("[M6] begins of the same message count, those that are refused do not", async () => {
  const c = await start(8);
  await own(c, "1", "first");
  const { object } = c.ledger("1");
  c.calls.length = 0;
  const batches = [["a1", "a2", "a3"], ["b1", "b2"], ["c1"]];
  const answers = await c.clock.runUntil(
    Promise.all(batches.map((names) => object.begin(beginRequest(c.envelope, c.uuid(), names)))),
  );
  const [message] = c.messages("exchange");
  expect(message?.message).toMatchObject({ prepares: [{}, {}, {}] });
  expect(answers).toEqual([
    expect.objectContaining({ ok: true }),
    FULL,
    expect.objectContaining({ ok: true }),
  ]);
});

test("[M6] a decision of the same message makes room first", async () => {
  const c = await start(4, { decisionWaitMs: 5 });
  const lease = await granted(c, "1", ["a1", "a2"]);
  const { object } = c.ledger("1");
  c.calls.length = 0;
  const decided = object.decide(decideRequest(c.envelope, lease, "ROLLED_BACK"));
  expect(await c.clock.runUntil(decided)).toMatchObject({ ok: true });
  await granted(c, "1", ["a1", "a2"]);
  const [message] = c.messages("exchange");
  expect(message?.message).toMatchObject({ decisions: [{ lease }], prepares: [{}] });
});

test("[M6] destroys and replaces count like creates", async () => {
  const c = await start(4);
  for (const name of ["a1", "a2", "a3"]) await own(c, "1", name);
  await granted(c, "1", [destroy("a1"), { kind: "replace", value: "a2" }]);
  expect(await begin(c, "1", [destroy("a3")])).toEqual(FULL);
});

test.each<Outcome>(["COMMITTED", "ROLLED_BACK"])("[M6] there is room again after %s", async (outcome) => {
  const c = await start(4);
  const lease = await granted(c, "1", ["a1", "a2"]);
  expect(await begin(c, "1", ["a3"])).toEqual(FULL);
  await decide(c, "1", lease, outcome);
  await granted(c, "1", ["a3", "a4"]);
  expect(await begin(c, "1", ["a5"])).toEqual(FULL);
});

test("[M6] above its limit, a shard starts, finds names, asks ledgers and decides leases", async () => {
  const c = await start(20);
  const leases = await Promise.all(["a", "b", "c"].map((name) => granted(c, "1", [`${name}1`, `${name}2`])));
  const [committed = "", rolledBack = ""] = leases;
  // The instance of the ledger ends while it begins, so only an inquiry ends the hold.
  await own(c, "2", "b0");
  c.fate = ({ method }) => (method === "exchange" ? "lose_answer" : "deliver");
  void c.ledger("2").object.begin(beginRequest(c.envelope, c.uuid(), ["lost"]));
  await c.pass(1_000);
  c.ledger("2").restart();
  c.fate = () => "deliver";
  lower(c, 4);
  expect(sizes(c)).toBe(7);
  expect(await begin(c, "1", ["a3"])).toEqual(FULL);
  expect(await begin(c, "2", ["b3"])).toEqual(FULL);
  expect(await ownerOf(c, "a1")).toBe("LEASE_CREATING 1");
  await c.pass(20_000);
  expect(sizes(c)).toBe(6);
  await decide(c, "1", committed, "COMMITTED");
  await decide(c, "1", rolledBack, "ROLLED_BACK");
  await c.pass(1_000);
  expect(
    c
      .claims()
      .map(({ canonical }) => canonical)
      .toSorted(),
  ).toEqual(["a1", "a2", "b0"]);
  expect(sizes(c)).toBe(2);
  await granted(c, "2", ["b3", "b4"]);
});
