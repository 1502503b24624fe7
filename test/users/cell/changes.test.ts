import * as fc from "fast-check";
import { pgTable, text } from "drizzle-orm/pg-core";
import { describe, expect, test } from "vitest";
import { claimable } from "../../../src/users/cell/claimable.ts";
import { Changes } from "../../../src/users/cell/changes.ts";
import type { Batch } from "../../../src/users/client/api-types.ts";
import { shipped } from "../../support/types.ts";

const routes = pgTable("routes", {
  id: text("id").primaryKey(),
  owner: text("owner").notNull(),
  path: text("path"),
});
const table = claimable(routes, {
  source: "RAILS_TABLE_ROUTES",
  subject: { type: "NAMESPACE", id: "owner" },
  attributes: { path: "ROUTES" },
});
const row = (
  id: string,
  path: string | null,
  owner = "1",
): { id: string; path: string | null; owner: string } => ({ id, path, owner });

function batchOf(
  ...changes: [ReturnType<typeof row> | undefined, ReturnType<typeof row> | undefined][]
): Batch | undefined {
  const all = new Changes(shipped);
  for (const [before, after] of changes) all.add(table, before, after);
  return all.batch()?.batch;
}

/** Writes a batch as `+create -destroy ~replace`. */
function story(batch: Batch | undefined): string {
  const { creates = [], destroys = [], replaces = [] } = batch ?? {};
  const said = [
    ...creates.map(({ bucket, source }) => `+${bucket.value}@${source.id}`),
    ...destroys.map(({ bucket, source }) => `-${bucket.value}@${source?.id}`),
    ...replaces.map(({ bucket, source }) => `~${bucket.value}@${source.id}`),
  ];
  return said.join(" ");
}

describe("what a transaction changes", () => {
  test.each([
    { what: "an insert", changes: [[undefined, row("1", "a")]], is: "+a@1" },
    { what: "a deletion", changes: [[row("1", "a"), undefined]], is: "-a@1" },
    { what: "a rename", changes: [[row("1", "a"), row("1", "b")]], is: "+b@1 -a@1" },
    { what: "another spelling", changes: [[row("1", "straße"), row("1", "STRASSE")]], is: "~STRASSE@1" },
    { what: "another subject", changes: [[row("1", "a", "1"), row("1", "a", "2")]], is: "~a@1" },
    { what: "nothing", changes: [[row("1", "a"), row("1", "a")]], is: "" },
    { what: "a column that becomes empty", changes: [[row("1", "a"), row("1", null)]], is: "-a@1" },
    { what: "a column that is filled", changes: [[row("1", null), row("1", "a")]], is: "+a@1" },
    {
      what: "a rename that is undone",
      changes: [
        [row("1", "a"), row("1", "b")],
        [row("1", "b"), row("1", "a")],
      ],
      is: "",
    },
    {
      what: "an insert, then a deletion",
      changes: [
        [undefined, row("1", "a")],
        [row("1", "a"), undefined],
      ],
      is: "",
    },
    {
      what: "a deletion, then an insert of the same row",
      changes: [
        [row("1", "a"), undefined],
        [undefined, row("1", "a")],
      ],
      is: "",
    },
    {
      what: "a name that moves to another row",
      changes: [
        [row("1", "a"), undefined],
        [undefined, row("2", "a")],
      ],
      is: "~a@2",
    },
    {
      what: "a swap",
      changes: [
        [row("1", "a"), row("1", "b")],
        [row("2", "b"), row("2", "a")],
      ],
      is: "~b@1 ~a@2",
    },
    {
      what: "a deletion of a row whose value cannot be claimed",
      changes: [[row("1", "a//b"), undefined]],
      is: "",
    },
  ] as {
    what: string;
    changes: [ReturnType<typeof row> | undefined, ReturnType<typeof row> | undefined][];
    is: string;
  }[])("$what", ({ changes, is }) => {
    expect(story(batchOf(...changes))).toBe(is);
  });

  test("a destroy names its source, but not its subject", () => {
    expect(batchOf([row("1", "a"), undefined])).toEqual({
      destroys: [{ bucket: { type: "ROUTES", value: "a" }, source: { type: "RAILS_TABLE_ROUTES", id: "1" } }],
      allow_missing: true,
    });
  });

  test("a scope belongs to creates and replaces, and another one is a replace", () => {
    const scoped = claimable(routes, {
      source: "RAILS_TABLE_ROUTES",
      subject: { type: "NAMESPACE", id: () => "7" },
      scope: "owner",
      attributes: { path: "ROUTES" },
    });
    const batch = (before: object | undefined, after: object | undefined): Batch | undefined => {
      const changes = new Changes(shipped);
      changes.add(scoped, before as never, after as never);
      return changes.batch()?.batch;
    };
    expect(batch(undefined, row("1", "a", "9970"))?.creates).toMatchObject([{ scope: "9970" }]);
    expect(batch(row("1", "a", "9970"), row("1", "a", "9971"))?.replaces).toMatchObject([{ scope: "9971" }]);
    expect(batch(row("1", "a", "9970"), row("1", "a", "9970"))).toBeUndefined();
    expect(batch(row("1", "a", "9970"), undefined)?.destroys?.[0]).not.toHaveProperty("scope");
    const none = batch(undefined, { id: "1", path: "a", owner: null });
    expect(none?.creates?.[0]).not.toHaveProperty("scope");
    const misspelled = { source: "RAILS_TABLE_ROUTES", subject: { type: "NAMESPACE", id: "owner" } } as const;
    expect(() =>
      claimable(routes, { ...misspelled, scope: "organization" as never, attributes: { path: "ROUTES" } }),
    ).toThrow("`scope` names organization, which is not a column of routes");
  });

  test("two rows with the same name, and values that are not names, are refused", () => {
    expect(() => batchOf([undefined, row("1", "Ada")], [undefined, row("2", "ADA")])).toThrow(
      "`path` of routes 2 is the same name as path of routes 1",
    );
    expect(() => batchOf([undefined, row("1", "a//b")])).toThrow("`path` of routes 1 cannot be claimed");
    expect(() => batchOf([row("1", "a"), row("2", "a")])).toThrow("a claimed row keeps its id");
  });

  test("unchanged values are not checked, even if they are not names", () => {
    expect(story(batchOf([row("1", "a//b"), row("1", "a//b")]))).toBe("");
    expect(story(batchOf([row("1", "Ada"), row("1", "Ada")], [row("2", "ADA"), row("2", "ADA")]))).toBe("");
    expect(story(batchOf([row("1", "a//b"), row("1", "c")]))).toBe("+c@1");
  });

  test("`enabled` is read once for both sides of a change", () => {
    let asked = 0;
    const flapping = claimable(routes, {
      source: "RAILS_TABLE_ROUTES",
      subject: { type: "NAMESPACE", id: "owner" },
      attributes: { path: { bucket: "ROUTES", enabled: () => (asked += 1) % 2 === 1 } },
    });
    const changes = new Changes(shipped);
    changes.add(flapping, row("1", "a", "1"), row("1", "a", "2"));
    changes.add(flapping, row("2", "b"), row("2", "c"));
    expect(story(changes.batch()?.batch)).toBe("+c@2 -b@2 ~a@1");
    expect(asked).toBe(1);
  });

  test("without a subject, a claim can be destroyed but not created", () => {
    const owned = claimable(routes, {
      source: "RAILS_TABLE_ROUTES",
      subject: { type: "NAMESPACE", id: () => null as unknown as string },
      attributes: { path: "ROUTES" },
    });
    const changes = new Changes(shipped);
    changes.add(owned, row("1", "a"), undefined);
    expect(story(changes.batch()?.batch)).toBe("-a@1");
    changes.add(owned, undefined, row("2", "b"));
    expect(() => changes.batch()).toThrow("`subject.id` of routes 2 is empty");
  });

  test("claims are computed from the rows as they are at the end", async () => {
    const changes = new Changes(shipped);
    changes.add(table, row("1", "a"), undefined);
    changes.add(table, undefined, row("2", "b"));
    changes.add(table, row("3", "c"), row("3", "d"));
    changes.add(table, row("4", "f"), undefined);
    const asked: unknown[] = [];
    const missing: unknown[] = [];
    await changes.refresh(
      async (_, ids) => {
        asked.push(...ids);
        return [row("1", "a"), row("3", "e")];
      },
      async (_, ids, isDeleted) => void missing.push([ids, isDeleted]),
    );
    expect(asked).toEqual(["1", "2", "3", "4"]);
    expect(missing).toEqual([
      [["2"], false],
      [["4"], true],
    ]);
    expect(story(changes.batch()?.batch)).toBe("+e@3 -c@3 -f@4");
  });

  test("a row that is stored with another spelling of its id is an error", async () => {
    const changes = new Changes(shipped);
    changes.add(table, undefined, row("A", "a"));
    const refresh = changes.refresh(
      async () => [row("a", "a")],
      async () => {},
    );
    await expect(refresh).rejects.toThrow("is stored as a: use the database's spelling");
  });

  test("after any sequence of changes, the batch has each name once, and is exactly the difference", () => {
    const names = ["a", "A", "b", "c", null];
    const step = fc.record({
      id: fc.constantFrom("1", "2", "3"),
      path: fc.constantFrom(...names),
      gone: fc.boolean(),
    });
    fc.assert(
      fc.property(
        fc.array(step, { maxLength: 12 }),
        fc.record({ 1: fc.constantFrom("a", "x"), 2: fc.constantFrom("b", "y") }),
        (steps, start) => {
          const before = new Map([
            ["1", row("1", start[1])],
            ["2", row("2", start[2])],
          ]);
          const now = new Map(before);
          const changes = new Changes(shipped);
          for (const { id, path, gone } of steps) {
            const was = now.get(id);
            const is = gone ? undefined : row(id, path);
            changes.add(table, was, is);
            if (is === undefined) now.delete(id);
            else now.set(id, is);
          }
          const canonical = (rows: Iterable<{ id: string; path: string | null }>): Map<string, string> =>
            new Map(
              [...rows].flatMap(({ id, path }) =>
                path === null ? [] : [[path.toLowerCase(), `${path}@${id}`]],
              ),
            );
          const after = [...now.values()].filter(({ path }) => path !== null);
          // A unique index of the table would refuse this name.
          fc.pre(canonical(after).size === after.length);
          const { creates = [], destroys = [], replaces = [] } = changes.batch()?.batch ?? {};
          const model = canonical(before.values());
          const ops = [...creates, ...destroys, ...replaces].map(({ bucket }) => bucket.value.toLowerCase());
          expect(new Set(ops).size).toBe(ops.length);
          for (const { bucket } of destroys) expect(model.delete(bucket.value.toLowerCase())).toBe(true);
          for (const { bucket } of creates) expect(model.has(bucket.value.toLowerCase())).toBe(false);
          for (const { bucket } of replaces) expect(model.has(bucket.value.toLowerCase())).toBe(true);
          for (const { bucket, source } of [...creates, ...replaces])
            model.set(bucket.value.toLowerCase(), `${bucket.value}@${source.id}`);
          expect(model).toEqual(canonical(after));
        },
      ),
    );
  });
});
