import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Lookups } from "../../../examples/cell/router/lookups.ts";
import type { Found } from "../../../src/client/index.ts";

beforeEach(() => void vi.useFakeTimers({ toFake: ["performance"] }));
afterEach(() => void vi.useRealTimers());

const foundIn = (cell: string): Found =>
  ({ cell: { id: cell, address: `http://127.0.0.1:900${cell}` } }) as Found;

/** A coordinator whose answer can be changed; it counts how often it is asked. */
function coordinator(answer: Found | undefined) {
  const self = { answer, asked: 0, find: () => ((self.asked += 1), Promise.resolve(self.answer)) };
  return self;
}

test("what was found is remembered for a moment, and then asked for again", async () => {
  const records = coordinator(foundIn("1"));
  const lookups = new Lookups(records, 1_000);
  expect(await lookups.find("ada")).toEqual({ found: foundIn("1"), ageMs: 0 });
  records.answer = undefined;
  vi.advanceTimersByTime(999);
  expect(await lookups.find("ada")).toEqual({ found: foundIn("1"), ageMs: 999 });
  vi.advanceTimersByTime(1);
  expect(await lookups.find("ada")).toEqual({ found: undefined, ageMs: 0 });
  expect(records.asked).toBe(2);
});

test("that nobody has a name is not remembered", async () => {
  const records = coordinator(undefined);
  const lookups = new Lookups(records, 1_000);
  expect((await lookups.find("ada")).found).toBeUndefined();
  records.answer = foundIn("2");
  expect((await lookups.find("ada")).found).toEqual(foundIn("2"));
});

test("that nobody can tell is an error, and not remembered either", async () => {
  const records = { find: () => Promise.reject(new Error("away")) };
  await expect(new Lookups(records, 1_000).find("ada")).rejects.toThrow("away");
});
