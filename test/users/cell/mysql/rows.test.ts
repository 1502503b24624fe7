/** Rows of claimable tables on MariaDB, which are read back because MySQL has no RETURNING. */
import { eq, sql } from "drizzle-orm";
import { bigint, int, mysqlTable, varchar } from "drizzle-orm/mysql-core";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { claimable, type Claimable } from "../../../../src/users/cell/claimable.ts";
import type { TransactionResult } from "../../../../src/users/cell/local.ts";
import { isSkipped } from "../../../support/databases/available.ts";
import { Installed, type Tx } from "./server.ts";

const NAME = { length: 20 };
const users = mysqlTable("users", {
  id: int().autoincrement().primaryKey(),
  name: varchar(NAME).notNull(),
  bio: varchar(NAME),
});
const accounts = mysqlTable("accounts", {
  id: bigint({ mode: "bigint" }).autoincrement().primaryKey(),
  name: varchar(NAME).notNull(),
});
let made = 0;
const nextId = (): string => `made-${(made += 1)}`;
const projects = mysqlTable("projects", {
  id: varchar(NAME).primaryKey().$defaultFn(nextId),
  name: varchar(NAME).notNull(),
});
const documents = mysqlTable("documents", {
  id: varchar({ length: 36 })
    .primaryKey()
    .default(sql`(UUID())`),
  name: varchar(NAME).notNull(),
});

const subject = { type: "USER", id: "id" } as const;
const attributes = { name: "USERNAMES" } as const;
const claimableUsers: Claimable = claimable(users, { source: "RAILS_TABLE_USERS", subject, attributes });
const claimableAccounts: Claimable = claimable(accounts, {
  source: "RAILS_TABLE_USERS",
  subject,
  attributes,
});
const claimableProjects: Claimable = claimable(projects, {
  source: "RAILS_TABLE_PROJECTS",
  subject,
  attributes,
});
const claimableDocuments: Claimable = claimable(documents, {
  source: "RAILS_TABLE_PROJECTS",
  subject,
  attributes,
});

describe.skipIf(isSkipped("MariaDB"))("rows on MariaDB", () => {
  let installed: Installed;

  beforeAll(async () => {
    installed = await Installed.start();
    await installed.run(
      `CREATE TABLE users (id int PRIMARY KEY AUTO_INCREMENT, name varchar(20) NOT NULL UNIQUE,
        bio varchar(20))`,
      "CREATE TABLE accounts (id bigint PRIMARY KEY AUTO_INCREMENT, name varchar(20) NOT NULL UNIQUE)",
      "CREATE TABLE projects (id varchar(20) PRIMARY KEY, name varchar(20) NOT NULL)",
      "CREATE TABLE documents (id varchar(36) PRIMARY KEY DEFAULT (UUID()), name varchar(20) NOT NULL)",
    );
  });
  beforeEach(() => installed.run("DELETE FROM users", "DELETE FROM accounts", "DELETE FROM projects"));
  afterAll(() => installed.stop());

  const done = async <T>(body: (tx: Tx) => Promise<T>): Promise<T> => valueOf(await installed.cell.run(body));
  const insert = (to: Claimable, rows: Record<string, unknown>[]) =>
    done((tx) => installed.cell.insert(tx, to, rows));
  const namesOf = (rows: readonly Readonly<Record<string, unknown>>[]): unknown[] =>
    rows.map((row) => row["name"]);

  test("all rows of an insert are stored or none, even if the body catches the error", async () => {
    await done(async (tx) => {
      await expect(
        installed.cell.insert(tx, claimableUsers, [{ name: "first" }, { name: "first" }]),
      ).rejects.toThrow();
      await installed.cell.insert(tx, claimableUsers, [{ name: "second" }]);
    });
    expect(namesOf(await installed.rows("SELECT * FROM users"))).toEqual(["second"]);
  });

  test("inserted rows are returned in order with their own ids, for every kind of id", async () => {
    const rows = await insert(claimableUsers, [
      { name: "c" },
      { name: "a" },
      { id: 900, name: "z" },
      { name: "b" },
    ]);
    expect(namesOf(rows)).toEqual(["c", "a", "z", "b"]);
    expect(rows.map((row) => row["bio"])).toEqual([null, null, null, null]);
    const stored = await installed.rows("SELECT * FROM users");
    expect(stored.toSorted((a, b) => Number(a["id"]) - Number(b["id"]))).toEqual(
      rows.toSorted((a, b) => Number(a["id"]) - Number(b["id"])),
    );
    expect(
      namesOf(
        await insert(
          claimableUsers,
          [12, 10, 11].map((id) => ({ id, name: `n${id}` })),
        ),
      ),
    ).toEqual(["n12", "n10", "n11"]);
    const projectRows = await insert(claimableProjects, [
      { name: "p" },
      { id: "own", name: "q" },
      { name: "r" },
    ]);
    expect(projectRows.map((row) => row["id"])).toEqual([
      expect.stringMatching(/^made-/),
      "own",
      expect.stringMatching(/^made-/),
    ]);
  });

  test("concurrent inserts in several transactions return their own rows", async () => {
    const all = await Promise.all(
      ["a", "b", "c", "d"].map((each) =>
        insert(
          claimableUsers,
          Array.from({ length: 50 }, (_, index) => ({ name: `${each}${index}` })),
        ),
      ),
    );
    const byId = new Map(
      (await installed.rows("SELECT id, name FROM users")).map((row) => [row["id"], row["name"]]),
    );
    expect(byId.size).toBe(200);
    for (const row of all.flat()) expect(byId.get(row["id"])).toBe(row["name"]);
  });

  test("ids beyond 2^53 are exact", async () => {
    await installed.run("ALTER TABLE accounts AUTO_INCREMENT = 9007199254740993");
    const [first, second] = await insert(claimableAccounts, [{ name: "a" }, { name: "b" }]);
    expect([first?.["id"], second?.["id"]]).toEqual([9007199254740993n, 9007199254740994n]);
    expect(claimableAccounts.idOf(first ?? {})).toBe("9007199254740993");
    const [updated] = await done((tx) =>
      installed.cell.update(tx, claimableAccounts, [9007199254740993n], { name: "c" }),
    );
    expect(updated).toEqual({ id: 9007199254740993n, name: "c" });
  });

  test("an id that MySQL does not return is refused, and nothing is saved", async () => {
    await expect(insert(claimableDocuments, [{ name: "a" }])).rejects.toThrow("give the row an id");
    expect(await installed.rows("SELECT * FROM documents")).toEqual([]);
  });

  test("an update returns the current rows, even if it changed nothing and the snapshot is old", async () => {
    await insert(claimableUsers, [{ id: 1, name: "a", bio: "old" }]);
    const rows = await done(async (tx) => {
      await tx.select().from(users);
      await installed.run("UPDATE users SET bio = 'new' WHERE id = 1");
      return installed.cell.update(tx, claimableUsers, [1], { name: "a" });
    });
    expect(rows).toEqual([{ id: 1, name: "a", bio: "new" }]);
  });

  test("rows are locked in the order of their ids, and deleted by them", async () => {
    await insert(
      claimableUsers,
      [3, 1, 2].map((id) => ({ id, name: `n${id}` })),
    );
    const locked = await done((tx) => installed.cell.lock(tx, claimableUsers, { where: undefined }, 2));
    expect(locked.map((row) => row["id"])).toEqual([1, 2]);
    await done((tx) => installed.cell.delete(tx, claimableUsers, [1, 3]));
    expect(
      namesOf(await done((tx) => installed.cell.lock(tx, claimableUsers, { where: eq(users.id, 2) }))),
    ).toEqual(["n2"]);
    expect(await installed.rows("SELECT id FROM users")).toEqual([{ id: 2 }]);
  });
});

function valueOf<T>(ran: TransactionResult<T>): T {
  if (ran.kind === "committed") return ran.value;
  throw ran.error;
}
