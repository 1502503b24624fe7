/** Tests of what a new set of types would change, and of what is refused (T3). */
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { CanonicalRule } from "../../../src/common/canonical/rule.ts";
import { typesOf } from "../../../src/common/types/document.ts";
import { planTypes, type TypesPlan } from "../../../src/common/types/plan.ts";
import {
  isSameType,
  TYPE_KINDS,
  Types,
  type TypeEntry,
  type TypeKind,
} from "../../../src/common/types/types.ts";

const folded: CanonicalRule = { form: "plain", script: "single", case: "folded" };

const entry = (
  name: string,
  number: number,
  more: Partial<Pick<TypeEntry, "kind" | "rule" | "isInUse">> = {},
): TypeEntry => {
  const { kind = "bucket", isInUse = false } = more;
  return { kind, name, number, rule: kind === "bucket" ? (more.rule ?? folded) : null, isInUse };
};
const used = (name: string, number: number, more: Parameters<typeof entry>[2] = {}): TypeEntry =>
  entry(name, number, { ...more, isInUse: true });

const plan = (before: readonly TypeEntry[], wanted: readonly TypeEntry[]): TypesPlan =>
  planTypes(new Types(before), wanted);

const story = ({ changes }: TypesPlan): string[] =>
  changes.map(({ change, kind, name }) => `${change} ${kind} ${name}`);
const refusals = (made: TypesPlan): string[] =>
  made.refusals.map(({ kind, name, reason }) => `${kind} ${name} ${reason}`);

describe("a plan", () => {
  test("is empty for the same set, in any order, whatever is in use", () => {
    const set = [used("A", 1), entry("B", 2), entry("U", 1, { kind: "subject" })];
    expect(plan(set, set.toReversed())).toEqual({ changes: [], refusals: [] });
    expect(plan(set, [entry("B", 2), entry("A", 1), used("U", 1, { kind: "subject" })])).toEqual({
      changes: [],
      refusals: [],
    });
  });

  test("has every entry that is added, removed or changed, with both versions", () => {
    const before = [entry("A", 1), entry("B", 2), entry("C", 3)];
    const after = [entry("A", 1), entry("B", 4), entry("D", 3)];
    expect(plan(before, after)).toEqual({
      changes: [
        { change: "change", kind: "bucket", name: "B", before: before[1], after: after[1] },
        { change: "remove", kind: "bucket", name: "C", before: before[2], after: null },
        { change: "add", kind: "bucket", name: "D", before: null, after: after[2] },
      ],
      refusals: [],
    });
  });

  test("keeps the kinds apart", () => {
    const before = [used("USERS", 1), entry("USERS", 1, { kind: "source" })];
    const after = [entry("USERS", 1), entry("USERS", 2, { kind: "source" })];
    const made = plan(before, after);
    expect([story(made), refusals(made)]).toEqual([["change source USERS"], []]);
  });

  const others: [string, CanonicalRule][] = [
    ["form", { ...folded, form: "path" }],
    ["script", { ...folded, script: "any" }],
    ["case", { ...folded, case: "exact" }],
    ["pattern", { ...folded, pattern: "a+" }],
    ["min_length", { ...folded, minLength: 2 }],
    ["max_length", { ...folded, maxLength: 2 }],
  ];

  test.each(others)("[T2] [T3] a rule in use never changes: %s", (_, rule) => {
    for (const [one, other] of [
      [folded, rule],
      [rule, folded],
    ] as const) {
      expect(refusals(plan([used("A", 1, { rule: one })], [entry("A", 1, { rule: other })]))).toEqual([
        "bucket A is in use, so its canonical rule must not change: a name could get a second owner",
      ]);
      expect(plan([entry("A", 1, { rule: one })], [entry("A", 1, { rule: other })]).refusals).toEqual([]);
    }
  });

  test("the order in which a rule's fields are written is no change", () => {
    const rule = {
      maxLength: 3,
      minLength: 1,
      pattern: "a",
      case: "folded",
      script: "single",
      form: "plain",
    };
    const same = {
      form: "plain",
      script: "single",
      case: "folded",
      pattern: "a",
      minLength: 1,
      maxLength: 3,
    };
    expect(plan([used("A", 1, { rule: rule as never })], [entry("A", 1, { rule: same as never })])).toEqual({
      changes: [],
      refusals: [],
    });
  });

  test.each(TYPE_KINDS)("[T2] [T3] a %s type in use is never removed, renamed or renumbered", (kind) => {
    const before = [used("A", 1, { kind }), entry("B", 2, { kind })];
    const other = (name: string, number: number): TypeEntry => entry(name, number, { kind });
    expect(refusals(plan(before, [other("B", 2)]))).toEqual([
      `${kind} A is in use, so it must not be removed`,
    ]);
    expect(refusals(plan(before, [other("B", 2), other("C", 1)]))).toEqual([
      `${kind} A is in use, so it must not be renamed to C`,
    ]);
    expect(refusals(plan(before, [other("A", 3), other("B", 2)]))).toEqual([
      `${kind} A is in use with the number 1, so it must not get the number 3`,
    ]);
    // Not by a swap either.
    expect(refusals(plan(before, [other("A", 2), other("B", 1)]))).toEqual([
      `${kind} A is in use with the number 1, so it must not get the number 2`,
    ]);
  });

  test("[T3] all refusals are told, and the changes that are not refused too", () => {
    const before = [used("A", 1), used("B", 2), used("C", 3), entry("D", 4)];
    const made = plan(before, [entry("B", 5), entry("C", 3, { rule: { ...folded, case: "exact" } })]);
    expect(story(made)).toEqual(["remove bucket A", "change bucket B", "change bucket C", "remove bucket D"]);
    expect(made.refusals.map(({ name }) => name)).toEqual(["A", "B", "C"]);
  });

  test("[T3] without refusals, the new set has every entry that is in use, unchanged", () => {
    const kind = fc.constantFrom<TypeKind>(...TYPE_KINDS);
    const rule = fc.constantFrom(folded, { ...folded, case: "exact" as const }, { ...folded, maxLength: 3 });
    const one = fc.record({
      kind,
      name: fc.constantFrom("A", "B", "C"),
      number: fc.integer({ min: 1, max: 3 }),
      rule,
      isInUse: fc.boolean(),
    });
    const set = fc
      .uniqueArray(one, { selector: ({ kind: k, name }) => `${k} ${name}`, maxLength: 6 })
      .filter((all) => new Set(all.map(({ kind: k, number }) => `${k} ${number}`)).size === all.length)
      .map((all) => all.map((each) => entry(each.name, each.number, each)));
    let accepted = 0;
    fc.assert(
      fc.property(set, set, (before, wanted) => {
        const made = plan(before, wanted);
        const after = new Types(wanted);
        const isKept = (each: TypeEntry): boolean => {
          const next = after.named(each.kind, each.name);
          return next !== undefined && isSameType(each, next);
        };
        expect(made.refusals.length).toBe(before.filter((each) => each.isInUse && !isKept(each)).length);
        if (made.refusals.length === 0 && before.some(({ isInUse }) => isInUse)) accepted += 1;
        // The changes lead from one set to the other.
        const result = new Map(before.map((each) => [`${each.kind} ${each.name}`, each]));
        for (const { kind: k, name, after: next } of made.changes)
          if (next === null) result.delete(`${k} ${name}`);
          else result.set(`${k} ${name}`, next);
        expect(result.size).toBe(wanted.length);
        for (const each of wanted) {
          const own = result.get(`${each.kind} ${each.name}`);
          expect(own !== undefined && isSameType(own, each)).toBe(true);
        }
      }),
      { numRuns: 1_000 },
    );
    expect(accepted).toBeGreaterThan(0);
  });
});

test("the shipped set can be replaced as a whole while nothing is in use", () => {
  const read = typesOf({
    bucket_types: { HANDLES: { number: 1, case: "exact" } },
    subject_types: { PERSON: { number: 1 } },
    source_types: { PEOPLE: { number: 1 } },
  });
  if (!read.ok) throw new Error(read.refusal.detail);
  const before = [entry("ROUTES", 1), entry("USER", 1, { kind: "subject" })];
  expect(plan(before, read.value).refusals).toEqual([]);
});
