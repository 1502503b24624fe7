import { afterEach, expect, test, vi } from "vitest";
import { Sampler } from "../../../src/coordinator/tracing/sampler.ts";

afterEach(() => void vi.restoreAllMocks());

/** How many of 100 requests are traced. */
const tracedOf = (sampler: Sampler, isSampled: boolean | undefined, hasKey = true): number =>
  Array.from({ length: 100 }, () => sampler.isTraced(isSampled, hasKey)).filter(Boolean).length;

test("the share decides about new traces", () => {
  const clock = { now: () => 0 };
  expect(tracedOf(new Sampler(0, 10, clock), undefined)).toBe(0);
  expect(tracedOf(new Sampler(1, 10, clock), undefined)).toBe(100);
  const draws = Array.from({ length: 100 }, (_, n) => n / 100);
  vi.spyOn(Math, "random").mockImplementation(() => draws.pop() ?? 1);
  expect(tracedOf(new Sampler(0.25, 10, clock), undefined)).toBe(25);
});

test("a trace that its caller does not sample is not traced", () => {
  expect(tracedOf(new Sampler(1, 10, { now: () => 0 }), false)).toBe(0);
});

test("callers with a key have some traces in a second, and beyond them the share decides", () => {
  let nowMs = 1_000_000;
  const sampler = new Sampler(0, 10, { now: () => nowMs });
  expect(tracedOf(sampler, true)).toBe(10);
  nowMs += 300;
  expect(tracedOf(sampler, true)).toBe(3);
  nowMs += 3_600_000;
  expect(tracedOf(sampler, true)).toBe(10);
  // A clock that goes back gives nothing, and takes nothing away for good.
  nowMs -= 3_600_000;
  expect(tracedOf(sampler, true)).toBe(0);
  nowMs += 1_000;
  expect(tracedOf(sampler, true)).toBe(10);
});

test("a caller without a valid key can have nothing traced", () => {
  expect(tracedOf(new Sampler(0, 10, { now: () => 0 }), true, false)).toBe(0);
});

test("with a rate of 0, no caller has a say", () => {
  expect(tracedOf(new Sampler(0, 0, { now: () => 0 }), true)).toBe(0);
});
