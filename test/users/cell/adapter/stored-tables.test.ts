/** Descriptions of tables that are read from the database. */
import { pgTable, text } from "drizzle-orm/pg-core";
import { expect, test } from "vitest";
import { table } from "../../../../src/users/cell/adapter/index.ts";
import { StoredTables } from "../../../../src/users/cell/adapter/stored-tables.ts";
import { claimable, type Claimable } from "../../../../src/users/cell/claimable.ts";

const claimableUsers: Claimable = claimable(table<{ id: string; username: string }>("users"), {
  source: "RAILS_TABLE_USERS",
  subject: { type: "USER", id: "id" },
  attributes: { username: "USERNAMES" },
});
const columns = { id: text(), username: text() };
const before = pgTable("users", columns);
const after = pgTable("users", { ...columns, bio: text() });

test("a description that was being read when a migration was noticed is read again", async () => {
  const first = Promise.withResolvers<typeof before>();
  const answers = [first.promise, Promise.resolve(after)];
  const tables = new StoredTables<never>({ read: async () => answers.shift() });
  const reading = tables.of(undefined, claimableUsers);
  tables.forget();
  first.resolve(before);
  expect((await reading).table).toBe(before);
  expect((await tables.of(undefined, claimableUsers)).table).toBe(after);
  // It is kept now.
  expect((await tables.of(undefined, claimableUsers)).table).toBe(after);
  expect(answers).toEqual([]);
});
