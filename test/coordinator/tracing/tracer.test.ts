import { expect, test, afterEach, vi } from "vitest";
import { formatTraceparent, parseTraceparent, Sampler } from "../../../src/coordinator/tracing/tracer.ts";

const TRACE = "0af7651916cd43dd8448eb211c80319c";
const SPAN = "b7ad6b7169203331";

test("a valid header names a span, and whether its trace is sampled", () => {
  const context = { traceId: TRACE, spanId: SPAN, isSampled: true };
  expect(parseTraceparent(`00-${TRACE}-${SPAN}-01`)).toEqual(context);
  expect(parseTraceparent(`00-${TRACE}-${SPAN}-ff`)).toEqual(context);
  expect(parseTraceparent(`00-${TRACE}-${SPAN}-02`)).toEqual({ ...context, isSampled: false });
  expect(formatTraceparent(context)).toBe(`00-${TRACE}-${SPAN}-01`);
  expect(formatTraceparent({ ...context, isSampled: false })).toBe(`00-${TRACE}-${SPAN}-00`);
});

test("of a later version, the fields of the first one are read", () => {
  expect(parseTraceparent(`cc-${TRACE}-${SPAN}-01`)?.traceId).toBe(TRACE);
  expect(parseTraceparent(`cc-${TRACE}-${SPAN}-01-what-the-future-holds`)?.traceId).toBe(TRACE);
});

test.each([
  ["nothing", undefined],
  ["an empty header", ""],
  ["no hyphens", `00${TRACE}${SPAN}01`],
  ["an invalid version", `ff-${TRACE}-${SPAN}-01`],
  ["a version of one digit", `0-${TRACE}-${SPAN}-01`],
  ["upper case", `00-${TRACE.toUpperCase()}-${SPAN}-01`],
  ["a trace id of zeros", `00-${"0".repeat(32)}-${SPAN}-01`],
  ["a span id of zeros", `00-${TRACE}-${"0".repeat(16)}-01`],
  ["a short trace id", `00-${TRACE.slice(1)}-${SPAN}-01`],
  ["a long span id", `00-${TRACE}-${SPAN}0-01`],
  ["flags that are no number", `00-${TRACE}-${SPAN}-0x`],
  ["more than version 00 has", `00-${TRACE}-${SPAN}-01-extra`],
  ["text after a later version", `cc-${TRACE}-${SPAN}-01.extra`],
  ["two headers", `00-${TRACE}-${SPAN}-01, 00-${TRACE}-${SPAN}-01`],
  ["a line break", `00-${TRACE}-${SPAN}-01\n`],
  ["a very long header", `cc-${TRACE}-${SPAN}-01-${"x".repeat(10_000)}`],
])("%s is ignored", (_, header) => {
  expect(parseTraceparent(header)).toBeUndefined();
});

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
