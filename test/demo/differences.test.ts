import { beforeEach, describe, expect, it } from "vitest";
import { findDifferences, type CellFacts, type Facts } from "../../demo/differences.ts";
import { claimsOf, type Entry } from "../../demo/entry.ts";
import type { ClaimRecord } from "../../demo/records.ts";

const first: Entry[] = [
  { kind: "group", name: "Gitlab-Org", routeId: 3, userId: undefined },
  { kind: "user", name: "ada", routeId: 10, userId: 11 },
];
const second: Entry[] = [{ kind: "project", name: "angular/core", routeId: 5, userId: undefined }];

const recordsOf = (cell: string, entries: Entry[]): ClaimRecord[] =>
  entries.flatMap(claimsOf).map((claim) => ({ ...claim, cell, status: "ACTIVE", lease: undefined }));

const cellOf = (cell: string, entries: Entry[]): CellFacts => ({
  cell,
  claims: entries.flatMap(claimsOf),
  // In the order of the listing: routes first, then users.
  records: recordsOf(cell, entries).toSorted((a, b) => (a.source.type < b.source.type ? -1 : 1)),
  outstandingHere: [],
  outstandingThere: [],
});

let facts: Facts;
let one: CellFacts;
let two: CellFacts;

beforeEach(() => {
  one = cellOf("1", first);
  two = cellOf("2", second);
  facts = {
    // The first spelling differs from the owner's, and nobody has the last name.
    asked: [
      { type: "ROUTES", value: "gitlab-org" },
      { type: "ROUTES", value: "ada" },
      { type: "USERNAMES", value: "ada" },
      { type: "ROUTES", value: "angular/core" },
      { type: "ROUTES", value: "free" },
    ],
    found: [...recordsOf("1", first), ...recordsOf("2", second), undefined],
    cells: [one, two],
    problems: [],
  };
});

it("passes when all agree", () => {
  expect(findDifferences(facts)).toEqual([]);
});

/** Changes one of the router's answers. */
const changeRecord = (index: number, change: Partial<ClaimRecord>): void => {
  const record = facts.found[index];
  if (record !== undefined) facts.found[index] = { ...record, ...change };
};

const differs = (name: string, here: string, there: string): string =>
  `${name}: its cell has "${here}", but the coordinator has "${there}"`;

describe("fails when", () => {
  it.each<{ what: string; plant: () => void; expected: string[] }>([
    {
      what: "two cells saved one name, in different spellings",
      plant: () =>
        two.claims.push(...claimsOf({ kind: "group", name: "GITLAB-org", routeId: 9, userId: undefined })),
      expected: [
        "ROUTES GITLAB-org: two owners, cell 1 and cell 2",
        "ROUTES gitlab-org: cell 2 has it, but the listing of its records does not",
      ],
    },
    {
      what: "the router finds no owner",
      plant: () => (facts.found[0] = undefined),
      expected: ["ROUTES gitlab-org: cell 1 has it, but the router finds no owner"],
    },
    {
      what: "the router finds the other cell",
      plant: () => changeRecord(0, { cell: "2" }),
      expected: ["ROUTES gitlab-org: cell 1 has it, but the router finds cell 2"],
    },
    {
      what: "the router finds an owner for a free name",
      plant: () => (facts.found[4] = facts.found[0]),
      expected: ["ROUTES free: the router finds cell 1, which does not have it"],
    },
    {
      what: "the coordinator has another source",
      plant: () => changeRecord(0, { source: { type: "RAILS_TABLE_ROUTES", id: "4" } }),
      expected: [
        differs(
          "ROUTES gitlab-org",
          "ROUTES Gitlab-Org, NAMESPACE 3, RAILS_TABLE_ROUTES 3",
          "ROUTES Gitlab-Org, NAMESPACE 3, RAILS_TABLE_ROUTES 4",
        ),
      ],
    },
    {
      what: "the coordinator has another subject",
      plant: () => changeRecord(1, { subject: { type: "NAMESPACE", id: "11" } }),
      expected: [
        differs(
          "ROUTES ada",
          "ROUTES ada, USER 11, RAILS_TABLE_ROUTES 10",
          "ROUTES ada, NAMESPACE 11, RAILS_TABLE_ROUTES 10",
        ),
      ],
    },
    {
      what: "the coordinator has an old spelling",
      plant: () => changeRecord(0, { bucket: { type: "ROUTES", value: "gitlab-org" } }),
      expected: [
        differs(
          "ROUTES gitlab-org",
          "ROUTES Gitlab-Org, NAMESPACE 3, RAILS_TABLE_ROUTES 3",
          "ROUTES gitlab-org, NAMESPACE 3, RAILS_TABLE_ROUTES 3",
        ),
      ],
    },
    {
      what: "a record is still held by a lease",
      plant: () => changeRecord(3, { status: "LEASE_DESTROYING", lease: "u" }),
      expected: ["ROUTES angular/core: LEASE_DESTROYING, held by lease u, though no lease is open"],
    },
    {
      what: "an active record is still held by a replace",
      plant: () => changeRecord(3, { lease: "u" }),
      expected: ["ROUTES angular/core: ACTIVE, held by lease u, though no lease is open"],
    },
    {
      what: "a name was not looked up",
      plant: () => (facts.asked.pop(), facts.found.pop(), facts.asked.splice(3, 1), facts.found.splice(3, 1)),
      expected: ["ROUTES angular/core: cell 2 has it, but it was not looked up"],
    },
    {
      what: "a lookup was not answered",
      plant: () => facts.found.pop(),
      expected: ["5 names were looked up, but 4 were answered"],
    },
    {
      what: "a record is missing from the listing",
      plant: () => two.records.pop(),
      expected: ["ROUTES angular/core: cell 2 has it, but the listing of its records does not"],
    },
    {
      what: "the listing has a record without a row",
      plant: () =>
        two.records.push(
          ...recordsOf("2", [{ kind: "group", name: "ghost", routeId: 99, userId: undefined }]),
        ),
      expected: ["ROUTES ghost: listed for cell 2, which does not have it"],
    },
    {
      what: "the listing has a record twice",
      plant: () => two.records.push(...two.records),
      expected: ["ROUTES angular/core: listed twice for cell 2"],
    },
    {
      what: "the listing has another cell's record",
      plant: () =>
        two.records.push(
          ...recordsOf("1", [{ kind: "group", name: "ghost", routeId: 99, userId: undefined }]),
        ),
      expected: [
        "ROUTES ghost: a record of cell 1, listed for cell 2",
        "ROUTES ghost: listed for cell 2, which does not have it",
      ],
    },
    {
      what: "the listing is out of order",
      plant: () => (one.records = one.records.toReversed()),
      expected: ["ROUTES gitlab-org: out of order in the listing of cell 1"],
    },
    {
      what: "a lease is open",
      plant: () => (one.outstandingHere.push("u"), two.outstandingThere.push("v")),
      expected: [
        "lease u: cell 1 still has it as an outstanding lease",
        "lease v of cell 2: neither committed nor rolled back at the coordinator",
      ],
    },
    {
      what: "a violation was noticed during the run",
      plant: () => facts.problems.push("ada: cell 2 saved it while cell 1 had it"),
      expected: ["ada: cell 2 saved it while cell 1 had it"],
    },
  ])("$what", ({ plant, expected }) => {
    plant();
    expect(findDifferences(facts)).toEqual(expected);
  });
});
