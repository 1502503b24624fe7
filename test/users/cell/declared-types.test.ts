/** Tests of a cell whose deployment has declared its own types. */
import { pgTable, serial, text } from "drizzle-orm/pg-core";
import { describe, expect, test } from "vitest";
import { Changes } from "../../../src/users/cell/changes.ts";
import { claimable } from "../../../src/users/cell/claimable.ts";
import { canonicalOf, numberOf } from "../../../src/users/cell/declared-types.ts";
import { ClaimableTables } from "../../../src/users/cell/tables.ts";
import type { TypesDocument } from "../../../src/common/types/document.ts";

const people = pgTable("people", { id: serial("id").primaryKey(), handle: text("handle").notNull() });

const document: TypesDocument = {
  bucket_types: { HANDLES: { number: 7, case: "exact", max_length: 5 }, OTHERS: { number: 8 } },
  subject_types: { PERSON: { number: 3 } },
  source_types: { PEOPLE: { number: 9 } },
};

/** The compiler only knows the types that Leasehold ships. */
const tableOf = (source = "PEOPLE", subject = "PERSON", bucket = "HANDLES") =>
  claimable(people, {
    source: source as never,
    subject: { type: subject as never, id: "id" },
    attributes: { handle: bucket as never },
  });
const bucketOf = (value: string, type = "HANDLES") => ({ type: type as never, value });

describe("the tables of a cell", () => {
  test("may only use types that are declared", () => {
    expect(new ClaimableTables([tableOf()], document).types.names("bucket")).toEqual(["HANDLES", "OTHERS"]);
    for (const [table, what] of [
      [tableOf("USERS"), "`source` of people must be a declared source type, and USERS is none"],
      [tableOf("PEOPLE", "USER"), "`subject.type` of people must be a declared subject type, and USER"],
      [tableOf("PEOPLE", "PERSON", "ROUTES"), "`attributes.handle` of people must be a declared bucket type"],
    ] as const)
      expect(() => new ClaimableTables([table], document)).toThrow(what);
    expect(() => new ClaimableTables([tableOf()])).toThrow("declared: RAILS_TABLE_USERS");
  });

  test("cannot be used with a document that is wrong, which names the entry", () => {
    const wrong = { ...document, bucket_types: { HANDLES: { number: 7, case: "EXACT" } } };
    expect(() => new ClaimableTables([tableOf()], wrong)).toThrow("`bucket_types.HANDLES.case`");
  });

  test("use the shipped types without a document", () => {
    const { types } = new ClaimableTables([]);
    expect(types.names("bucket")).toContain("ROUTES");
  });
});

describe("names under a declared rule", () => {
  const { types } = new ClaimableTables([tableOf()], document);

  test("have the canonical form of that rule, and its bounds", () => {
    expect(canonicalOf(types, bucketOf("Ada"))).toEqual({ ok: true, canonical: "Ada" });
    expect(canonicalOf(types, bucketOf("Ada", "OTHERS"))).toEqual({ ok: true, canonical: "ada" });
    expect(canonicalOf(types, bucketOf("too-long"))).toMatchObject({ ok: false });
    expect(canonicalOf(types, bucketOf("Ada"), 2)).toMatchObject({ ok: false });
  });

  test("are the same only if their canonical forms are, so another case is a rename", () => {
    const changed = (table: ReturnType<typeof tableOf>): object | undefined => {
      const changes = new Changes(types);
      changes.add(table, { id: 1, handle: "ada" }, { id: 1, handle: "Ada" });
      return changes.batch()?.batch;
    };
    expect(changed(tableOf())).toMatchObject({
      creates: [{ bucket: { type: "HANDLES", value: "Ada" } }],
      destroys: [{ bucket: { type: "HANDLES", value: "ada" } }],
    });
    expect(changed(tableOf("PEOPLE", "PERSON", "OTHERS"))).toMatchObject({
      replaces: [{ bucket: { type: "OTHERS", value: "Ada" } }],
    });
  });

  test("[T1] have the declared numbers in digests", () => {
    expect([
      numberOf(types, "bucket", "HANDLES"),
      numberOf(types, "subject", "PERSON"),
      numberOf(types, "source", "PEOPLE"),
    ]).toEqual([7, 3, 9]);
  });

  test("of a type that this copy of the types lacks are an error that says what to do", () => {
    for (const use of [
      () => canonicalOf(types, bucketOf("ada", "NEWER")),
      () => numberOf(types, "source", "NEWER"),
    ])
      expect(use).toThrow(/NEWER, which the coordinator has; update this copy of the declared types/);
  });
});
