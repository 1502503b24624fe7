import { expect, it } from "vitest";
import { keyOf, MAX_NAMES, makeWorkload, readNames } from "../../demo/names.ts";
import { canonicalize } from "../../src/common/canonical/canonicalize.ts";
import { ruleOf } from "../support/types.ts";

const all = await readNames();

it("reads names whose keys are equal to the coordinator's canonical forms", () => {
  expect(all).toHaveLength(MAX_NAMES);
  for (const name of all) {
    expect(canonicalize(ruleOf("ROUTES"), name, 1_024)).toEqual({ ok: true, canonical: keyOf(name) });
    if (!name.includes("/"))
      expect(canonicalize(ruleOf("USERNAMES"), name, 1_024)).toEqual({ ok: true, canonical: keyOf(name) });
  }
});

it("gives both cells at least 1,000 names in common, and each cell thousands of its own", () => {
  const { names, orders, contested, reserve } = makeWorkload(all, MAX_NAMES, 1);
  expect(names).toHaveLength(MAX_NAMES);
  expect(contested.size).toBeGreaterThanOrEqual(1_000);
  const [one, two] = [
    new Set(orders["1"].map(({ name }) => name)),
    new Set(orders["2"].map(({ name }) => name)),
  ];
  expect([...one].filter((name) => two.has(name)).toSorted()).toEqual([...contested].toSorted());
  expect(one.size + two.size + reserve.length).toBe(MAX_NAMES + contested.size);
  expect(Math.min(one.size, two.size)).toBeGreaterThan(5_000);
  for (const { name } of reserve) expect(one.has(name) || two.has(name)).toBe(false);
});

it("makes the same workload for the same seed, and another one for another seed", () => {
  expect(makeWorkload(all, 500, 3)).toEqual(makeWorkload(all, 500, 3));
  expect(makeWorkload(all, 500, 3).names).not.toEqual(makeWorkload(all, 500, 4).names);
});

it("makes names of three kinds, and only projects have a slash", () => {
  const kinds = new Map<string, number>();
  for (const { name, kind } of makeWorkload(all, MAX_NAMES, 1).names) {
    kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
    expect(kind === "project").toBe(name.includes("/"));
  }
  expect([...kinds.keys()].toSorted()).toEqual(["group", "project", "user"]);
});
