import * as my from "drizzle-orm/mysql-core";
import { drizzle as drizzleMysql } from "drizzle-orm/mysql-proxy";
import * as pg from "drizzle-orm/pg-core";
import { drizzle as drizzlePostgres } from "drizzle-orm/pg-proxy";
import { expect, test } from "vitest";
import { Cell, createCell } from "../../../src/users/cell/cell.ts";
import { createClient } from "../../../src/users/client/client.ts";
import { claimable, type Claimable } from "../../../src/users/cell/claimable.ts";
import { mysql } from "../../../src/users/cell/mysql/index.ts";
import { postgres } from "../../../src/users/cell/postgres/index.ts";

interface Actions {
  onDelete?: pg.UpdateDeleteAction;
  onUpdate?: pg.UpdateDeleteAction;
}

const onPostgres = postgres(drizzlePostgres(async () => ({ rows: [] })));
const onMysql = mysql(drizzleMysql(async () => ({ rows: [] })));

const users = pg.pgTable("users", { id: pg.serial().primaryKey(), name: pg.text().notNull().unique() });
const claimableUsers: Claimable = claimable(users, {
  source: "RAILS_TABLE_USERS",
  subject: { type: "USER", id: "id" },
  attributes: { name: "USERNAMES" },
});

/**
 * A table whose claimed `owner` refers to a user's name, and whose unclaimed `userId` refers to a user's id.
 */
function withKeys({ owner, userId }: { owner?: Actions; userId?: Actions }): Claimable {
  const table = pg.pgTable("emails", {
    id: pg.serial().primaryKey(),
    owner: owner === undefined ? pg.text() : pg.text().references(() => users.name, owner),
    userId:
      userId === undefined ? pg.integer("user_id") : pg.integer("user_id").references(() => users.id, userId),
  });
  return claimable(table, {
    source: "RAILS_TABLE_EMAILS",
    subject: { type: "USER", id: "id" },
    attributes: { owner: "EMAILS" },
  });
}

test.each([
  [{ userId: { onDelete: "cascade" } }, ["emails.userId → users deletes rows by ON DELETE CASCADE"]],
  [
    { owner: { onDelete: "set null" } },
    ["emails.owner → users changes claimed columns by ON DELETE SET NULL"],
  ],
  [
    { owner: { onDelete: "set default" } },
    ["emails.owner → users changes claimed columns by ON DELETE SET DEFAULT"],
  ],
  [{ owner: { onUpdate: "cascade" } }, ["emails.owner → users changes claimed columns by ON UPDATE CASCADE"]],
  [{ owner: { onDelete: "cascade", onUpdate: "set null" } }, [/ON DELETE CASCADE/, /ON UPDATE SET NULL/]],
  [{ userId: { onDelete: "set null", onUpdate: "cascade" } }, []],
  [{ owner: { onDelete: "restrict", onUpdate: "no action" }, userId: {} }, []],
] as const)("%j", (keys, sentences) => {
  const seen = onPostgres.cascades([claimableUsers, withKeys(keys)]);
  expect(seen).toEqual(
    sentences.map((sentence) =>
      typeof sentence === "string" ? expect.stringContaining(sentence) : expect.stringMatching(sentence),
    ),
  );
});

const orgs = pg.pgTable("orgs", { id: pg.serial().primaryKey(), slug: pg.text().notNull().unique() });
const claimableOrgs: Claimable = claimable(orgs, {
  source: "RAILS_TABLE_ORGANIZATIONS",
  subject: { type: "ORGANIZATION", id: "id" },
  attributes: { slug: "ORGANIZATION_PATH" },
});
const projects = pg.pgTable("projects", {
  id: pg.serial().primaryKey(),
  path: pg.text(),
  orgId: pg.integer("org_id").references(() => orgs.id, { onDelete: "set null", onUpdate: "cascade" }),
  owner: pg.text().references(() => users.name, { onDelete: "set default", onUpdate: "cascade" }),
});
const projectOptions = {
  source: "RAILS_TABLE_PROJECTS",
  subject: { type: "PROJECT", id: "id" },
  attributes: { path: "ROUTES" },
} as const;
const ownPath = (row: { owner: string | null }): boolean => row.owner !== null;

test.each([
  ["neither", projectOptions, []],
  [
    "a scope",
    { ...projectOptions, scope: "orgId" },
    ["projects.orgId → orgs changes the scope of claims by ON DELETE SET NULL"],
  ],
  [
    "a subject",
    { ...projectOptions, subject: { type: "USER", id: "owner" } },
    [
      "projects.owner → users changes the subject of claims by ON DELETE SET DEFAULT",
      "projects.owner → users changes the subject of claims by ON UPDATE CASCADE",
    ],
  ],
  ...(
    [
      ["a function of the scope", { scope: (row: { orgId: number | null }) => row.orgId }],
      ["a function of the subject", { subject: { type: "USER", id: (row: { id: number }) => row.id } }],
      ["`when`", { attributes: { path: { bucket: "ROUTES", when: ownPath } } }],
    ] as const
  ).map(
    ([what, options]) =>
      [
        what,
        { ...projectOptions, ...options },
        [
          "projects.orgId → orgs changes a column that `subject`, `scope` or `when` may read by ON DELETE",
          "projects.owner → users changes a column that `subject`, `scope` or `when` may read by ON DELETE",
          "projects.owner → users changes a column that `subject`, `scope` or `when` may read by ON UPDATE",
        ],
      ] as const,
  ),
] as const)("foreign keys that change the columns of %s", (_what, options, sentences) => {
  const seen = onPostgres.cascades([claimableOrgs, claimableUsers, claimable(projects, options)]);
  expect(seen.toSorted()).toEqual(sentences.map((sentence) => expect.stringContaining(sentence)));
});

test("tables that are not claimable are ignored", () => {
  expect(onPostgres.cascades([withKeys({ userId: { onDelete: "cascade" } })])).toEqual([]);
});

test("a table can refer to itself, on MySQL too", () => {
  const groups = my.mysqlTable("groups", {
    id: my.int().primaryKey(),
    parentId: my.int("parent_id").references((): my.AnyMySqlColumn => groups.id, { onDelete: "cascade" }),
    path: my.varchar({ length: 255 }),
  });
  const claimableGroups: Claimable = claimable(groups, {
    source: "RAILS_TABLE_PROJECTS",
    subject: { type: "PROJECT", id: "id" },
    attributes: { path: "ROUTES" },
  });
  expect(onMysql.cascades([claimableGroups])).toEqual([
    expect.stringContaining("groups.parentId → groups deletes rows by ON DELETE CASCADE"),
  ]);
});

test("a cell refuses deadlines that cannot be", () => {
  const client = createClient({ url: "http://x.test", key: "k", cell: "1" });
  for (const field of ["beginDeadlineMs", "preflightDeadlineMs", "decideDeadlineMs"])
    for (const ms of [0, -1, Number.NaN])
      expect(() =>
        createCell({ client, database: onPostgres, tables: [claimableUsers], [field]: ms }),
      ).toThrow(`\`${field}\` must be above 0`);
});

test("a cell refuses cascades unless its options accept them", () => {
  const client = createClient({
    url: "http://x.test",
    key: "k",
    cell: "1",
    fetch: () => Promise.reject(new Error("not asked")),
  });
  const tables = [claimableUsers, withKeys({ userId: { onDelete: "cascade" } })];
  expect(() => createCell({ client, database: onPostgres, tables })).toThrow("ON DELETE CASCADE");
  expect(createCell({ client, database: onPostgres, tables, cascades: "accept" })).toBeInstanceOf(Cell);
});
