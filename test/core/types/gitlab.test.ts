import { describe, expect, it } from "vitest";
import { documentOf } from "../../../src/core/types/document.ts";
import { gitlabTypes } from "../../../src/core/types/gitlab.ts";
import { shipped } from "../../support/types.ts";

// Storage keeps these numbers: a change here changes the meaning of every stored row.
const kinds = [
  {
    kind: "bucket",
    types: gitlabTypes.bucket_types,
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
    kind: "subject",
    types: gitlabTypes.subject_types,
    numbers: { ORGANIZATION: 1, GROUP: 2, PROJECT: 3, USER: 4 },
  },
  {
    kind: "source",
    types: gitlabTypes.source_types,
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
] as const;

describe.each(kinds)("the shipped $kind types", ({ kind, types, numbers }) => {
  const entries = Object.entries<{ number: number }>(types);

  it("have the names and numbers of the protobuf", () => {
    expect(Object.fromEntries(entries.map(([name, { number }]) => [name, number]))).toEqual(numbers);
    expect(shipped.names(kind)).toEqual(Object.keys(numbers));
  });

  it("have unique positive integers that SQLite and protobuf can store", () => {
    expect(new Set(entries.map(([, { number }]) => number)).size).toBe(entries.length);
    for (const [, { number }] of entries) expect(number).toSatisfy((n: number) => n > 0 && n === (n | 0));
  });

  it("do not list UNSPECIFIED, which is refused everywhere", () => {
    expect(Object.keys(types)).not.toContain("UNSPECIFIED");
    expect(shipped.named(kind, "UNSPECIFIED")).toBeUndefined();
    expect(shipped.numbered(kind, 0)).toBeUndefined();
  });

  it("are found by their names and by their numbers, and nothing by any other name or number", () => {
    for (const [name, { number }] of entries) {
      expect(shipped.numbered(kind, number)).toMatchObject({ kind, name, number });
      expect(shipped.named(kind, name)).toBe(shipped.numbered(kind, number));
    }
    for (const unknown of [-1, entries.length + 1, 1.5, Number.NaN])
      expect(shipped.numbered(kind, unknown)).toBeUndefined();
    for (const unknown of ["toString", "__proto__", "constructor", "", "routes"])
      expect(shipped.named(kind, unknown)).toBeUndefined();
  });

  it("[T2] are not in use until a begin uses them", () => {
    for (const name of Object.keys(types)) expect(shipped.named(kind, name)?.isInUse).toBe(false);
  });
});

describe("the canonical rules of the shipped types", () => {
  it("check paths by segment, and look-alikes except in email addresses and ids", () => {
    const path = { form: "path", script: "single", case: "folded" };
    const any = { form: "plain", script: "any", case: "folded" };
    const rules = shipped.entries.flatMap(({ kind, name, rule }) =>
      kind === "bucket" ? [[name, rule]] : [],
    );
    expect(Object.fromEntries(rules)).toEqual({
      ROUTES: path,
      ORGANIZATION_PATH: path,
      REDIRECT_ROUTES: path,
      USERNAMES: { form: "plain", script: "single", case: "folded" },
      EMAILS: { ...any, form: "email" },
      PROJECT_IDS: any,
      USER_IDS: any,
    });
  });

  it("are written out in full in the set's document", () => {
    const { bucket_types: buckets, ...others } = documentOf(shipped.entries);
    expect(buckets["ROUTES"]).toEqual({ number: 1, form: "path", script: "single", case: "folded" });
    expect(buckets["EMAILS"]).toEqual({ number: 5, form: "email", script: "any", case: "folded" });
    expect(others).toEqual({
      subject_types: gitlabTypes.subject_types,
      source_types: gitlabTypes.source_types,
    });
  });
});
