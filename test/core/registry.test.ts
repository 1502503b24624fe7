import { describe, expect, it } from "vitest";
import {
  bucketTypeByNumber,
  bucketTypes,
  sourceTypeByNumber,
  sourceTypes,
  subjectTypeByNumber,
  subjectTypes,
} from "../../src/core/registry.ts";

// Storage keeps these numbers: a change here changes the meaning of every stored row.
const registries = [
  {
    what: "bucket",
    types: bucketTypes,
    byNumber: bucketTypeByNumber,
    numbers: {
      ROUTES: 1,
      ORGANIZATION_PATH: 2,
      REDIRECT_ROUTES: 3,
      USERNAMES: 4,
      EMAILS: 5,
      PROJECT_IDS: 6,
      USER_IDS: 10,
    },
  },
  {
    what: "subject",
    types: subjectTypes,
    byNumber: subjectTypeByNumber,
    numbers: { ORGANIZATION: 1, GROUP: 2, PROJECT: 3, USER: 4 },
  },
  {
    what: "source",
    types: sourceTypes,
    byNumber: sourceTypeByNumber,
    numbers: {
      RAILS_TABLE_USERS: 1,
      RAILS_TABLE_EMAILS: 2,
      RAILS_TABLE_ROUTES: 3,
      RAILS_TABLE_PROJECTS: 4,
      RAILS_TABLE_GROUPS: 5,
      RAILS_TABLE_ORGANIZATIONS: 6,
      RAILS_TABLE_REDIRECT_ROUTES: 7,
    },
  },
];

describe.each(registries)("the registry of $what types", ({ types, byNumber, numbers }) => {
  const entries = Object.entries<{ number: number }>(types);

  it("has the names and numbers of the protobuf", () => {
    expect(Object.fromEntries(entries.map(([name, { number }]) => [name, number]))).toEqual(numbers);
  });

  it("gives every type a unique positive integer that SQLite and protobuf can store", () => {
    expect(new Set(entries.map(([, { number }]) => number)).size).toBe(entries.length);
    for (const [, { number }] of entries) expect(number).toSatisfy((n: number) => n > 0 && n === (n | 0));
  });

  it("does not list UNSPECIFIED, which is refused everywhere", () => {
    expect(Object.keys(types)).not.toContain("UNSPECIFIED");
    expect(byNumber(0)).toBeUndefined();
  });

  it("finds every type by its number, and nothing by any other number", () => {
    for (const [name, { number }] of entries) expect(byNumber(number)).toBe(name);
    for (const unknown of [-1, entries.length + 1, 1.5, Number.NaN])
      expect(byNumber(unknown)).toBeUndefined();
  });
});

describe("the canonical rules", () => {
  it("check paths by segment, and look-alikes except in email addresses and ids", () => {
    const rules = Object.entries(bucketTypes).map(([name, { canonical }]) => [name, canonical]);
    const path = { path: true, name: true };
    expect(Object.fromEntries(rules)).toEqual({
      ROUTES: path,
      ORGANIZATION_PATH: path,
      REDIRECT_ROUTES: path,
      USERNAMES: { path: false, name: true },
      EMAILS: { path: false, name: false },
      PROJECT_IDS: { path: false, name: false },
      USER_IDS: { path: false, name: false },
    });
  });
});
