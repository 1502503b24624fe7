/** How long a call about many names waits for each shard, with a clock of the test. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { BucketKey } from "../../../src/coordinator/kernel/messages.ts";
import { ok } from "../../../src/coordinator/kernel/refusal.ts";
import { shardOf } from "../../../src/coordinator/kernel/placement.ts";
import { defaultLimits } from "../../../src/common/limits.ts";
import type { Deployment } from "../../../src/coordinator/isolate/deployment.ts";
import { lookUpMany } from "../../../src/coordinator/isolate/lookup.ts";

const SHARDS = 2;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
});

afterEach(() => {
  vi.useRealTimers();
});

/** A key on a shard. */
function keyOn(shard: number): BucketKey {
  for (let n = 0; ; n += 1) {
    const canonical = `name-${n}`;
    if (shardOf(1, canonical, SHARDS) === shard) return { type: 1, canonical };
  }
}

/** Looks up a free name on each shard. Shard 0 answers after 5 ms, and shard 1 after `delayMs`. */
async function lookUpWith(delayMs: number): Promise<(number | string)[]> {
  const after = (ms: number): Promise<void> => new Promise((ring) => setTimeout(ring, ms));
  const shard = (index: number) => ({
    lookup: async ({ keys }: { keys: BucketKey[] }) => {
      await after(index === 0 ? 5 : delayMs);
      const value = { found: keys.map(() => ({ kind: "none" })), settled: keys.map(() => true), position: 7 };
      return { ok: true, value };
    },
  });
  const config = { limits: defaultLimits };
  const directory = { view: async () => ok({ cells: new Map(), removedCells: new Map() }) };
  const parts = { objects: { shard }, envelope: {}, shards: SHARDS, config, directory };
  const deployment = parts as unknown as Deployment;
  const looked = lookUpMany(deployment, () => {}, [keyOn(0), keyOn(1)]);
  await vi.runAllTimersAsync();
  const answered = await looked;
  const answers = answered.ok ? answered.value.answers : [];
  return answers.map((each) => (each.ok ? each.value.position : each.refusal.code));
}

test("a shard that has waited for a ledger in vain can still answer about its other names", async () => {
  expect(await lookUpWith(defaultLimits.inquiryTimeoutMs + 50)).toEqual([7, 7]);
});

test("a shard that hangs is given up before a router gives up the call", async () => {
  const routerTimeoutMs = 2_000;
  expect(await lookUpWith(routerTimeoutMs - 100)).toEqual([7, "DEADLINE_EXCEEDED"]);
});
