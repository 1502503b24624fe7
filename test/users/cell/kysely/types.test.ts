/** Mistakes in tables, columns and conditions do not compile. `npm run typecheck` reads this file. */
import type { ColumnType, Generated, Kysely, Transaction } from "kysely";
import { expectTypeOf, test } from "vitest";
import type { Cell } from "../../../../src/users/cell/cell.ts";
import { claimable } from "../../../../src/users/cell/claimable.ts";
import { kyselyPostgres, kyselyTables } from "../../../../src/users/cell/kysely/index.ts";

interface Database {
  users: {
    id: Generated<number>;
    username: string;
    bio: string | null;
    born: ColumnType<Date, string | undefined>;
    created: ColumnType<Date, string | undefined, never>;
    changed: ColumnType<Date | null, never, string>;
  };
  audit: { userId: number };
}

const table = kyselyTables<Database>();
const users = table("users");
const subject = { type: "USER", id: "id" } as const;
const source = "RAILS_TABLE_USERS";

test("a table and its columns are those of the Database interface", () => {
  // @ts-expect-error -- there is no such table.
  table("user");
  // @ts-expect-error -- there is no such column.
  claimable(users, { source, subject, attributes: { usernme: "USERNAMES" } });
  const id = "userid" as const;
  // @ts-expect-error -- the subject's id is no such column.
  claimable(users, { source, subject: { type: "USER", id }, attributes: { username: "USERNAMES" } });
  claimable(users, { source, subject, changedAt: "born", attributes: { username: "USERNAMES" } });
});

test("rows, new rows and conditions have the types of the table", () => {
  const use = async (cell: Cell<Transaction<Database>>): Promise<void> => {
    await cell.transaction(async (tx) => {
      const ada = await tx.insert(users, { username: "ada", born: "1815-12-10" });
      expectTypeOf(ada).toEqualTypeOf<{
        id: number;
        username: string;
        bio: string | null;
        born: Date;
        created: Date;
        changed: Date | null;
      }>();
      // @ts-expect-error -- there is no such column.
      await tx.insert(users, { username: "ada", nick: "a" });
      // @ts-expect-error -- a username is required.
      await tx.insert(users, { bio: "a" });
      // @ts-expect-error -- a username is text.
      await tx.insert(users, { username: 1 });
      await tx.update(users, (eb) => eb("username", "=", "ada"), { bio: null });
      // @ts-expect-error -- there is no such column.
      await tx.update(users, (eb) => eb("usernme", "=", "ada"), { bio: null });
      // @ts-expect-error -- a username is text.
      await tx.update(users, (eb) => eb("username", "=", 1), { bio: null });
      // @ts-expect-error -- a condition is a boolean.
      await tx.update(users, (eb) => eb.ref("username"), { bio: null });
      // @ts-expect-error -- there is no such column.
      await tx.update(users, { usernme: "ada" }, { bio: null });
      // @ts-expect-error -- a username is text.
      await tx.delete(users, { username: 1 });
      // @ts-expect-error -- text is no condition.
      await tx.delete(users, "username = 'ada'");
      // @ts-expect-error -- there is no such column.
      await tx.update(users, undefined, { usernme: "ada" });
      await tx.update(users, undefined, { changed: "2026-01-01" });
      // @ts-expect-error -- the column can only be inserted.
      await tx.update(users, undefined, { created: "2026-01-01" });
      // @ts-expect-error -- the column can only be updated.
      await tx.insert(users, { username: "ada", changed: "2026-01-01" });
      expectTypeOf(tx.db).toEqualTypeOf<Transaction<Database>>();
    });
  };
  expectTypeOf(use).toBeFunction();
  expectTypeOf<ReturnType<typeof kyselyPostgres<Database>>["run"]>().toBeFunction();
  expectTypeOf(kyselyPostgres<Database>)
    .parameter(0)
    .toEqualTypeOf<Kysely<Database>>();
});
