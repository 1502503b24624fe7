import { expect, it } from "vitest";
import { pause, Queue } from "../../demo/queue.ts";

it("returns items in order, and undefined when none are left", () => {
  const queue = new Queue([1, 2, 3]);
  expect(queue.take(2)).toEqual([1, 2]);
  expect(queue.take(2)).toEqual([3]);
  expect(queue.take(2)).toBeUndefined();
});

it("returns a delayed item only after its delay", async () => {
  const queue = new Queue<number>([]);
  queue.putBack([1], 20);
  expect(queue.take(5)).toEqual([]);
  expect(queue.length).toBe(1);
  await pause(30);
  expect(queue.take(5)).toEqual([1]);
});

it("lists all remaining items, including delayed ones", () => {
  const queue = new Queue([1, 2]);
  queue.putBack([3], 1_000);
  expect(new Set(queue.all())).toEqual(new Set([1, 2, 3]));
});
