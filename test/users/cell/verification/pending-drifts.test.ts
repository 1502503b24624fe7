import { expect, test } from "vitest";
import type { Drift } from "../../../../src/users/cell/verification/compare.ts";
import { PendingDrifts } from "../../../../src/users/cell/verification/decide.ts";

const drifts = (count: number): Drift[] =>
  Array.from({ length: count }, () => ({ action: "destroy" }) as Drift);
const recency = (asOfMs: number) => ({ recentMs: 1, asOfMs });
const taken = (pending: PendingDrifts, isLast: boolean) =>
  [...pending.take(isLast)].map(({ drifts: its, recency: { asOfMs } }) => [its.length, asOfMs]);

test("drifts wait until a group is full, or until the last page", () => {
  const pending = new PendingDrifts(5);
  expect(taken(pending, true)).toEqual([]);
  pending.add(drifts(3), recency(10));
  expect(taken(pending, false)).toEqual([]);
  pending.add(drifts(9), recency(20));
  expect(pending.drifts.length).toBe(12);
  expect(taken(pending, false)).toEqual([
    [5, 10],
    [5, 10],
  ]);
  expect(taken(pending, true)).toEqual([[2, 10]]);
  expect(taken(pending, true)).toEqual([]);
});

test("[V2] ages are measured from the earliest reading of the pending drifts", () => {
  const pending = new PendingDrifts(2);
  pending.add(drifts(2), recency(10));
  expect(taken(pending, false)).toEqual([[2, 10]]);
  pending.add([], recency(20));
  pending.add(drifts(1), recency(40));
  pending.add(drifts(1), recency(30));
  expect(taken(pending, false)).toEqual([[2, 30]]);
});
