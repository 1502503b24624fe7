/** A walk over all shards that takes more than one call. */
import { expect, test } from "vitest";
import { ok, refused, type Result } from "../../../../../src/coordinator/kernel/refusal.ts";
import {
  FIRST_SHARD,
  walkShards,
  type WalkPosition,
} from "../../../../../src/coordinator/capabilities/records/edge/shard-walk.ts";

interface Part {
  item: string;
  next: number | null;
}

/** Shards with `sizes[shard]` items, each read with one message. */
function shardsWith(sizes: readonly number[]) {
  const asked: string[] = [];
  const read = async (shard: number, cursor: number | null): Promise<Result<Part>> => {
    const item = cursor ?? 0;
    asked.push(`${shard}.${item}`);
    return ok({ item: `${shard}.${item}`, next: item + 1 < (sizes[shard] ?? 0) ? item + 1 : null });
  };
  return { asked, read };
}

const every = (sizes: readonly number[]): string[] =>
  sizes.flatMap((size, shard) => Array.from({ length: Math.max(size, 1) }, (_, item) => `${shard}.${item}`));

test.each([
  { sizes: [1], width: 4, calls: 1, rounds: 1 },
  { sizes: [3, 1, 4, 1, 5], width: 2, calls: 3, rounds: 100 },
  { sizes: [3, 1, 4, 1, 5], width: 5, calls: 100, rounds: 2 },
  { sizes: [9, 0, 0, 9], width: 3, calls: 2, rounds: 2 },
  { sizes: [1, 1, 1, 1, 1, 1, 1], width: 3, calls: 100, rounds: 1 },
])("reads everything once, whatever the budget: $sizes, $calls calls, $rounds rounds", async (given) => {
  const { sizes, width, calls, rounds } = given;
  const { asked, read } = shardsWith(sizes);
  const items: string[] = [];
  let position: WalkPosition<number> | null = FIRST_SHARD;
  for (let requests = 0; position !== null; requests += 1) {
    expect(requests).toBeLessThanOrEqual(every(sizes).length);
    const before: number = asked.length;
    const budget = { calls, rounds };
    const next: Result<WalkPosition<number> | null> = await walkShards({
      shards: sizes.length,
      width,
      from: position,
      budget,
      read,
      add: ({ item }) => items.push(item),
    });
    if (!next.ok) throw new Error(next.refusal.detail);
    position = next.value;
    expect(asked.length - before).toBeLessThanOrEqual(calls);
    expect(budget.calls).toBe(calls - (asked.length - before));
    expect(budget.rounds).toBeGreaterThanOrEqual(0);
  }
  expect(items).toEqual(every(sizes));
});

test("walks that share a budget stop where it ends", async () => {
  const budget = { calls: 3, rounds: 10 };
  const { read } = shardsWith([2, 1]);
  const walk = () =>
    walkShards({ shards: 2, width: 1, from: FIRST_SHARD, budget, read, add: () => undefined });
  expect(await walk()).toEqual(ok(null));
  expect(await walk()).toEqual(ok({ shard: 0, cursor: null }));
});

test("a shard that does not answer ends the walk with its refusal", async () => {
  const { read } = shardsWith([1, 1, 1]);
  const down = refused("UNAVAILABLE", "shard 1 cannot be reached");
  const walk = walkShards({
    shards: 3,
    width: 3,
    from: FIRST_SHARD,
    budget: { calls: 9, rounds: 9 },
    read: async (shard, cursor: number | null): Promise<Result<Part>> =>
      shard === 1 ? down : read(shard, cursor),
    add: () => undefined,
  });
  expect(await walk).toEqual(down);
});
