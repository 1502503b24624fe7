import { expect, test } from "vitest";
import { ReadLimiter } from "../../../../src/coordinator/capabilities/reads/read-limiter.ts";
import { defaultLimits } from "../../../../src/common/limits.ts";
import { Cluster } from "../../../support/cluster.ts";
import { callerOf } from "../../../support/ops.ts";

const limits = { ...defaultLimits, concurrentReads: 3, concurrentReadsPerKey: 2 };

/** A limiter whose timers end when the test says. */
function limiter(): { reads: ReadLimiter; timers: Set<() => void> } {
  const timers = new Set<() => void>();
  const after = (_: number, then: () => void): (() => void) => {
    timers.add(then);
    return () => void timers.delete(then);
  };
  return { reads: new ReadLimiter({ after }, limits), timers };
}

const reason = "TOO_MANY_READS";

test("as many reads of a key, and of a cell, as allowed", () => {
  const { reads } = limiter();
  expect([reads.start("a", "k1"), reads.start("b", "k1")]).toEqual([undefined, undefined]);
  expect(reads.start("c", "k1")).toMatchObject({
    code: "RESOURCE_EXHAUSTED",
    reason,
    retryAfterMs: 1_000,
    detail: expect.stringContaining("concurrent_reads_per_key"),
  });
  expect(reads.start("d", "k2")).toBeUndefined();
  expect(reads.start("e", "k3")).toMatchObject({
    reason,
    detail: expect.stringContaining("concurrent_reads`"),
  });
  reads.end("a");
  expect(reads.start("f", "k1")).toBeUndefined();
  expect(reads.running).toBe(3);
});

test("a repeated message counts and ends nothing more", () => {
  const { reads, timers } = limiter();
  reads.start("a", "k1");
  reads.start("a", "k1");
  expect([reads.running, timers.size]).toEqual([1, 1]);
  expect(reads.start("b", "k1")).toBeUndefined();
  reads.end("a");
  reads.end("a");
  reads.end("unknown");
  expect([reads.running, timers.size]).toEqual([1, 1]);
  expect([reads.start("c", "k1"), reads.start("d", "k1")?.reason]).toEqual([undefined, reason]);
});

test("a read that nobody ends expires", () => {
  const { reads, timers } = limiter();
  reads.start("a", "k1");
  reads.start("b", "k1");
  for (const expire of timers) expire();
  expect([reads.running, timers.size]).toEqual([0, 0]);
  expect([reads.start("c", "k1"), reads.start("d", "k1")]).toEqual([undefined, undefined]);
});

test("a ledger counts the reads of the shards and its own listings, and nothing else", async () => {
  const c = await Cluster.start({ shards: 1, limits: { concurrentReads: 1 } });
  const { object } = c.ledger("1");
  const call = { ...c.envelope, caller: callerOf() };
  const run = c.clock.runUntil.bind(c.clock);
  const list = () => object.listLeases({ ...call, createdAfterMs: 0, afterPosition: 0, limit: 10 });
  const refused = { ok: false, refusal: expect.objectContaining({ reason }) };
  expect(await run(object.authorize({ ...call, read: "a" }))).toMatchObject({ ok: true });
  expect(await run(list())).toEqual(refused);
  expect(await run(object.authorize({ ...call, read: "b" }))).toEqual(refused);
  expect(await run(object.authorize(call))).toMatchObject({ ok: true });
  expect(await run(object.getLease({ ...call, lease: c.uuid() }))).toMatchObject({
    refusal: { code: "NOT_FOUND" },
  });
  await run(object.endRead({ ...c.envelope, read: "a" }));
  expect(await run(list())).toMatchObject({ ok: true });
});
