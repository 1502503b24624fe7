import * as fc from "fast-check";
import { expect, test } from "vitest";
import { compareBytes, sourceIdOf, sourceOrder } from "../../src/common/source-order.ts";

const bytewise = (a: string, b: string): number => Math.sign(Buffer.compare(Buffer.from(a), Buffer.from(b)));

test("[R3] decimal ids sort as numbers, also above 2^53, and before all others", () => {
  const digits = fc.stringMatching(/^(0|[1-9][0-9]{0,40})$/);
  fc.assert(
    fc.property(digits, digits, (a, b) => {
      const [left, right] = [BigInt(a), BigInt(b)];
      expect(bytewise(sourceOrder(a), sourceOrder(b))).toBe(left < right ? -1 : left > right ? 1 : 0);
    }),
  );
  fc.assert(
    fc.property(
      digits,
      fc.string({ unit: "grapheme", minLength: 1 }),
      (a, b) => /^\d+$/.test(b) || bytewise(sourceOrder(a), sourceOrder(b)) < 0,
    ),
  );
});

test("[R3] other ids sort by their bytes", () => {
  const others = fc
    .string({ unit: "binary", minLength: 1, maxLength: 20 })
    .filter((id) => id.isWellFormed() && !/^\d+$/.test(id));
  fc.assert(
    fc.property(others, others, (a, b) => bytewise(sourceOrder(a), sourceOrder(b)) === bytewise(a, b)),
  );
});

test("[R3] no two ids have the same key; leading zeros sort right after the number without them", () => {
  const ids = ["7", "07", "007", "8", "10", "010", "0", "00"];
  expect(ids.toSorted((a, b) => bytewise(sourceOrder(a), sourceOrder(b)))).toEqual([
    "0",
    "00",
    "7",
    "07",
    "007",
    "8",
    "10",
    "010",
  ]);
  fc.assert(
    fc.property(
      fc.stringMatching(/^[0-9a]{1,6}$/),
      fc.stringMatching(/^[0-9a]{1,6}$/),
      (a, b) => a === b || sourceOrder(a) !== sourceOrder(b),
    ),
  );
});

test("compareBytes orders as UTF-8 does, also above U+FFFF", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), fc.string({ unit: "binary" }), (a, b) => {
      fc.pre(a.isWellFormed() && b.isWellFormed());
      expect(Math.sign(compareBytes(a, b))).toBe(bytewise(a, b));
    }),
  );
});

test("[R3] the stored form never changes (golden vectors)", () => {
  expect(["7", "42", "0", "007", "x", "4x", "x4"].map(sourceOrder)).toEqual([
    "00017",
    "000242",
    "00010",
    "00017002",
    "1x",
    "14x",
    "1x4",
  ]);
});

test("[R3] compareBytes sorts code units before, among and after the surrogates by their bytes", () => {
  const ordered = ["\ud7ff", "\ue000", "\uffff", "\u{10000}", "\u{10ffff}"];
  for (const [at, a] of ordered.entries()) {
    for (const [other, b] of ordered.entries())
      expect(Math.sign(compareBytes(a, b))).toBe(Math.sign(at - other));
  }
});

test("[R3] the id of a source order is the id that it was made of", () => {
  fc.assert(
    fc.property(fc.oneof(fc.stringMatching(/^0{0,3}[0-9]{1,40}$/), fc.string({ minLength: 1 })), (id) => {
      expect(sourceIdOf(sourceOrder(id))).toBe(id);
    }),
  );
});
