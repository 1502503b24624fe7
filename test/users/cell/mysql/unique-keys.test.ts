/** Unique keys of the cell's own database, whose violations are validation errors too. */
import { eq, sql } from "drizzle-orm";
import { int, mysqlTable, unique, uniqueIndex, varchar } from "drizzle-orm/mysql-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createCell, type Cell } from "../../../../src/users/cell/cell.ts";
import { patientCell, patientClient } from "../../../../src/users/cell/conformance/target.ts";
import { claimable } from "../../../../src/users/cell/claimable.ts";
import { toValidationErrors } from "../../../../src/users/cell/validation.ts";
import { createClient } from "../../../../src/users/client/client.ts";
import { isSkipped } from "../../../support/databases/available.ts";
import { testCoordinator } from "../scenarios/starts.ts";
import type { TestedCoordinator } from "../scenarios/drizzle.ts";
import { fresh } from "../../../../src/users/cell/conformance/world.ts";
import { Installed, type Tx } from "./server.ts";

const name = (column: string) => varchar(column, { length: 80 });
const accounts = mysqlTable(
  "accounts",
  {
    id: int("id").autoincrement().primaryKey(),
    username: name("username").unique(),
    email: name("email"),
    path: name("path"),
    tenant: int("tenant").notNull().default(1),
    note: name("note").unique(),
    // The keys of these columns exist only in the database.
    slug: name("slug"),
    handle: name("handle"),
  },
  (table) => [
    uniqueIndex("one_email").on(sql`(lower(${table.email}))`),
    unique("path_in_tenant").on(table.tenant, table.path),
  ],
);
/** The keys of two tables may have the same name. */
const stores = mysqlTable("stores", { id: int("id").autoincrement().primaryKey(), slug: name("slug") });
const logs = mysqlTable("logs", { id: int("id").primaryKey(), slug: name("slug") });

const createTables = [
  `CREATE TABLE accounts (id int PRIMARY KEY AUTO_INCREMENT,
    username varchar(80), email varchar(80), path varchar(80), tenant int NOT NULL DEFAULT 1,
    note varchar(80), slug varchar(80) UNIQUE, handle varchar(80) UNIQUE,
    UNIQUE KEY accounts_username_unique (username), UNIQUE KEY accounts_note_unique (note),
    UNIQUE KEY one_email (email), UNIQUE KEY path_in_tenant (tenant, path), UNIQUE (handle, slug))`,
  "CREATE TABLE stores (id int PRIMARY KEY AUTO_INCREMENT, slug varchar(80) UNIQUE)",
  "CREATE TABLE logs (id int PRIMARY KEY, slug varchar(80) UNIQUE)",
];

const subject = { type: "USER", id: "id" } as const;
const claimables = [
  claimable(accounts, {
    source: "RAILS_TABLE_USERS",
    subject,
    attributes: {
      id: "USER_IDS",
      username: "USERNAMES",
      email: "EMAILS",
      path: "ROUTES",
      slug: "ROUTES",
      handle: "ROUTES",
    },
  }),
  claimable(stores, { source: "RAILS_TABLE_ROUTES", subject, attributes: { slug: "REDIRECT_ROUTES" } }),
];

type NewAccount = typeof accounts.$inferInsert;

describe.skipIf(isSkipped("MariaDB"))("MariaDB", () => {
  let coordinator: TestedCoordinator;
  let installed: Installed;
  let cell: Cell<Tx>;

  beforeAll(async () => {
    [coordinator, installed] = await Promise.all([testCoordinator(), Installed.start()]);
    const { url, fetch, keys } = coordinator;
    cell = createCell<Tx>({
      client: createClient({ url, fetch, key: keys.cell("1"), cell: "1", ...patientClient }),
      database: installed.cell,
      tables: claimables,
      ...patientCell,
    });
    await installed.run(...createTables);
  });
  afterAll(async () => {
    await cell.flush();
    await installed.stop();
    await coordinator.stop();
  });

  /** The fields of the error of a call that must fail. */
  const fieldsOf = async (work: Promise<unknown>): Promise<string[]> => {
    const error = await work.then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    expect(error).toBeInstanceOf(Error);
    return toValidationErrors(error).map(
      ({ table, field, id, problem }) => `${table} ${id} ${field}: ${problem}`,
    );
  };
  const twice = async (row: NewAccount): Promise<string[]> => {
    await cell.transaction((tx) => tx.insert(accounts, row));
    return fieldsOf(cell.transaction((tx) => tx.insert(accounts, row)));
  };

  test.each([
    ["of a column that drizzle declares", "username", (value: string) => ({ username: value })],
    [
      "of an expression that drizzle declares",
      "email",
      (value: string) => ({ email: `${value.replaceAll(" ", "_")}@x.io` }),
    ],
    ["of a claimed and another column", "path", (value: string) => ({ path: value })],
    ["that only the database knows", "slug", (value: string) => ({ slug: value })],
  ])("a unique key %s is taken", async (_, field, rowOf) => {
    expect(await twice(rowOf(`it's 'x' for key 'PRIMARY' ${fresh("name")}`))).toEqual([
      `accounts undefined ${field}: taken`,
    ]);
  });

  test("a claimed primary key is taken, and a key without claimed columns is no field", async () => {
    expect(await twice({ id: 70_001 })).toEqual(["accounts 70001 id: taken"]);
    expect(await twice({ note: fresh("note") })).toEqual([]);
  });

  test("the row of an update is named", async () => {
    const [taken, other] = [fresh("taken"), fresh("other")];
    await cell.transaction((tx) => tx.insert(accounts, { username: taken }));
    const { id } = await cell.transaction((tx) => tx.insert(accounts, { username: other }));
    const failed = cell.transaction((tx) => tx.update(accounts, eq(accounts.id, id), { username: taken }));
    expect(await fieldsOf(failed)).toEqual([`accounts ${id} username: taken`]);
  });

  test("an upsert takes a key that a migration adds later, and refuses other columns", async () => {
    const path = fresh("path");
    const row = { tenant: 3, path, handle: `${path}-1` };
    const upsert = (...key: (keyof typeof row)[]) => cell.transaction((tx) => tx.upsert(accounts, key, row));
    for (const key of [["tenant"], ["path"], ["handle", "path"]] as const)
      await expect(upsert(...key)).rejects.toThrow(`of a unique key of accounts, not [${key.join(", ")}]`);
    const { id } = await upsert("path", "tenant");
    await installed.run("CREATE UNIQUE INDEX later ON accounts (handle, path)");
    expect(await upsert("handle", "path")).toMatchObject({ id });
  });

  test("the table is the one that was written, with the cell or with drizzle", async () => {
    const slug = fresh("slug");
    await installed.run(`INSERT INTO stores (slug) VALUES ('${slug}')`);
    expect(await fieldsOf(cell.transaction((tx) => tx.insert(stores, { slug })))).toEqual([
      "stores undefined slug: taken",
    ]);
    expect(await fieldsOf(cell.transaction((tx) => tx.db.insert(stores).values({ slug })))).toEqual([
      "stores undefined slug: taken",
    ]);
    const id = 7;
    await installed.run(`INSERT INTO logs (id, slug) VALUES (${id}, '${slug}')`);
    expect(await fieldsOf(cell.transaction((tx) => tx.db.insert(logs).values({ id, slug })))).toEqual([]);
    // The statement's table is unknown, so no field is blamed.
    const raw = sql.raw(`REPLACE INTO logs (id) SELECT 8 UNION ALL SELECT id FROM missing_table`);
    expect(await fieldsOf(cell.transaction((tx) => tx.db.execute(raw)))).toEqual([]);
  });
});
