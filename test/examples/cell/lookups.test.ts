import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Lookups } from "../../../examples/cell/router/lookups.ts";
import type { Found } from "../../../src/client/index.ts";

beforeEach(() => void vi.useFakeTimers({ toFake: ["performance"] }));
afterEach(() => void vi.useRealTimers());

const foundIn = (cell: string): Found =>
  ({ cell: { id: cell, address: `http://127.0.0.1:900${cell}` } }) as Found;

const ada = { type: "HANDLES", value: "ada" } as const;

/** A coordinator with an answer that tests can change. It counts its lookups. */
function coordinator(answer: Found | undefined) {
  const self = { answer, asked: 0, find: () => ((self.asked += 1), Promise.resolve(self.answer)) };
  return self;
}

test("a found name is cached briefly, and then looked up again", async () => {
  const records = coordinator(foundIn("1"));
  const lookups = new Lookups(records, 1_000);
  expect(await lookups.find(ada)).toEqual({ found: foundIn("1"), ageMs: 0 });
  records.answer = undefined;
  vi.advanceTimersByTime(999);
  expect(await lookups.find(ada)).toEqual({ found: foundIn("1"), ageMs: 999 });
  vi.advanceTimersByTime(1);
  expect(await lookups.find(ada)).toEqual({ found: undefined, ageMs: 0 });
  expect(records.asked).toBe(2);
});

test("a name of another type is another name", async () => {
  const records = coordinator(foundIn("1"));
  const lookups = new Lookups(records, 1_000);
  await lookups.find(ada);
  records.answer = foundIn("2");
  expect((await lookups.find({ type: "STORES", value: "ada" })).found).toEqual(foundIn("2"));
  expect((await lookups.find(ada)).found).toEqual(foundIn("1"));
});

test("a free name is not cached", async () => {
  const records = coordinator(undefined);
  const lookups = new Lookups(records, 1_000);
  expect((await lookups.find(ada)).found).toBeUndefined();
  records.answer = foundIn("2");
  expect((await lookups.find(ada)).found).toEqual(foundIn("2"));
});

test("a failed lookup throws", async () => {
  const records = { find: () => Promise.reject(new Error("away")) };
  await expect(new Lookups(records, 1_000).find(ada)).rejects.toThrow("away");
});
