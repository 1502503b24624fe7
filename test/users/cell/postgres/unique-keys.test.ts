/** Unique keys of the cell's own database, whose violations are validation errors too. */
import { sql, type SQL } from "drizzle-orm";
import { integer, pgSchema, pgTable, serial, text, unique, uniqueIndex } from "drizzle-orm/pg-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createCell, type Cell } from "../../../../src/users/cell/cell.ts";
import { patientCell, patientClient } from "../../../../src/users/cell/conformance/target.ts";
import { claimable } from "../../../../src/users/cell/claimable.ts";
import { postgres } from "../../../../src/users/cell/postgres/index.ts";
import type { FieldError } from "../../../../src/users/cell/errors.ts";
import { toValidationErrors } from "../../../../src/users/cell/validation.ts";
import { createClient } from "../../../../src/users/client/client.ts";
import { isSkipped } from "../../../support/databases/available.ts";
import type { Orm, Tx } from "../scenarios/dialect.ts";
import { pglite, PostgresServer, testCoordinator } from "../scenarios/starts.ts";
import type { TestedCoordinator, TestedDatabase } from "../scenarios/drizzle.ts";
import { fresh } from "../../../../src/users/cell/conformance/world.ts";

const accounts = pgTable(
  "accounts",
  {
    id: serial("id").primaryKey(),
    username: text("username").unique(),
    email: text("email"),
    path: text("path"),
    tenant: integer("tenant").notNull().default(1),
    note: text("note").unique(),
    // The following keys exist only in the database.
    slug: text("slug"),
    handle: text("handle"),
    alias: text("Display alias"),
    first: text("first"),
    last: text("last"),
    later: text("later"),
  },
  (table) => [
    uniqueIndex("accounts_email").on(sql`lower(${table.email})`),
    unique().on(table.tenant, table.path),
  ],
);
const elsewhere = pgSchema("elsewhere").table("accounts", {
  id: serial("id").primaryKey(),
  username: text("username").unique(),
});
/** Drizzle's `casing` makes the names of its columns. */
const cased = pgTable("cased", { id: serial().primaryKey(), userName: text().unique() });
const logs = pgTable("logs", { id: serial("id").primaryKey(), username: text("username").unique() });

const createTables = [
  `CREATE TABLE accounts (id serial PRIMARY KEY, username text CONSTRAINT accounts_username_unique UNIQUE,
    email text, path text, tenant int NOT NULL DEFAULT 1, note text CONSTRAINT accounts_note_unique UNIQUE,
    slug text UNIQUE, handle varchar(80), "Display alias" text UNIQUE, first text, last text,
    later text UNIQUE DEFERRABLE INITIALLY DEFERRED,
    CONSTRAINT accounts_tenant_path_unique UNIQUE (tenant, path))`,
  "CREATE UNIQUE INDEX accounts_email ON accounts (lower(email))",
  "CREATE UNIQUE INDEX short_handle ON accounts (tenant, (lower(handle) || ', it''s (x'))",
  "CREATE UNIQUE INDEX whole_name ON accounts ((first || last))",
  "CREATE SCHEMA elsewhere",
  "CREATE TABLE elsewhere.accounts (id serial PRIMARY KEY, username text UNIQUE)",
  `CREATE TABLE cased (id serial PRIMARY KEY, "userName" text CONSTRAINT "cased_user_name_unique" UNIQUE)`,
  "CREATE TABLE logs (id serial PRIMARY KEY, username text UNIQUE)",
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
      alias: "ROUTES",
      first: "ROUTES",
      last: "ROUTES",
      later: "ROUTES",
    },
  }),
  claimable(elsewhere, { source: "RAILS_TABLE_EMAILS", subject, attributes: { username: "USERNAMES" } }),
  claimable(cased, { source: "RAILS_TABLE_ROUTES", subject, attributes: { userName: "USERNAMES" } }),
];

type NewAccount = typeof accounts.$inferInsert;

suite("PGlite", pglite);
describe.skipIf(isSkipped("PostgreSQL"))("PostgreSQL", () => {
  suite("node-postgres", new PostgresServer().nodePostgres);
  suite("postgres-js", new PostgresServer().postgresJs);
});

function suite(name: string, start: () => Promise<TestedDatabase>): void {
  describe(name, () => {
    let coordinator: TestedCoordinator;
    let tested: TestedDatabase;
    let orm: Orm;
    let cell: Cell<Tx>;
    const run = (statement: SQL) => orm.execute(statement);

    beforeAll(async () => {
      [coordinator, tested] = await Promise.all([testCoordinator(), start()]);
      ({ orm } = tested);
      const { url, fetch, keys } = coordinator;
      const client = createClient({ url, fetch, key: keys.cell("1"), cell: "1", ...patientClient });
      cell = createCell<Tx>({
        client,
        database: postgres(orm as never),
        tables: claimables,
        ...patientCell,
      });
      await cell.install();
      for (const statement of createTables) await run(sql.raw(statement));
    });
    afterAll(async () => {
      await cell.flush();
      await tested.stop();
      await coordinator.stop();
    });

    const thrownBy = (work: Promise<unknown>): Promise<unknown> =>
      work.then(
        () => undefined,
        (error: unknown) => error,
      );
    const fieldsOf = (errors: readonly FieldError[]): string[] =>
      errors.map(({ table, field, id, problem }) => `${table} ${id} ${field}: ${problem}`);
    /** The fields of the error of a transaction that inserts the same row twice. */
    const twice = async (row: NewAccount): Promise<string[]> => {
      await cell.transaction((tx) => tx.insert(accounts, row));
      const error = await thrownBy(cell.transaction((tx) => tx.insert(accounts, row)));
      expect(error).toBeInstanceOf(Error);
      return fieldsOf(toValidationErrors(error));
    };

    test.each([
      ["of a column that drizzle declares", "username", (value: string) => ({ username: value })],
      ["of an expression that drizzle declares", "email", (value: string) => ({ email: `${value}@X.io` })],
      ["of a claimed and another column", "path", (value: string) => ({ path: value })],
      ["that only the database knows", "slug", (value: string) => ({ slug: value })],
      ["of an expression that only the database knows", "handle", (value: string) => ({ handle: value })],
      ["of a column whose name has a space", "alias", (value: string) => ({ alias: value })],
    ])("a unique key %s is taken", async (_, field, rowOf) => {
      expect(await twice(rowOf(fresh("name")))).toEqual([`accounts undefined ${field}: taken`]);
    });

    test("a unique key that is checked at COMMIT is taken", async () => {
      const later = fresh("name");
      await run(sql`INSERT INTO accounts (later) VALUES (${later})`);
      const error = await thrownBy(cell.transaction((tx) => tx.insert(accounts, { later })));
      expect(fieldsOf(toValidationErrors(error))).toEqual(["accounts undefined later: taken"]);
    });

    test("the primary key is taken if it is claimed", async () => {
      expect(await twice({ id: 70_001 })).toEqual(["accounts 70001 id: taken"]);
    });

    test("a key without claimed columns, or of an expression of two columns, is no field error", async () => {
      expect(await twice({ note: fresh("note") })).toEqual([]);
      expect(await twice({ first: fresh("ada"), last: "lovelace" })).toEqual([]);
    });

    test("the row of an update is named, and the error is the driver's own", async () => {
      const [taken, other] = [fresh("taken"), fresh("other")];
      await cell.transaction((tx) => tx.insert(accounts, { username: taken }));
      const { id } = await cell.transaction((tx) => tx.insert(accounts, { username: other }));
      let caught: unknown;
      const error = await thrownBy(
        cell.transaction(async (tx) => {
          caught = await thrownBy(tx.update(accounts, sql`id = ${id}`, { username: taken }));
          throw caught;
        }),
      );
      expect(error).toBe(caught);
      expect(toValidationErrors(error)).toEqual([
        { table: "accounts", field: "username", id: String(id), problem: "taken" },
      ]);
    });

    test("a chunk of a bulk insert, and a preflight, fail with the field", async () => {
      const username = fresh("bulk");
      await cell.transaction((tx) => tx.insert(accounts, { username }));
      const rows = [{ username: fresh("bulk") }, { username }];
      const bulk = await thrownBy(cell.bulkInsert(accounts, rows));
      expect(fieldsOf(toValidationErrors(bulk))).toEqual(["accounts undefined username: taken"]);
      const slug = fresh("slug");
      await run(sql`INSERT INTO accounts (slug) VALUES (${slug})`);
      const planned = await thrownBy(cell.preflight((plan) => plan.insert(accounts, { id: 80_001, slug })));
      expect(fieldsOf(toValidationErrors(planned))).toEqual(["accounts 80001 slug: taken"]);
    });

    test("a write with drizzle's transaction is recognized, and an error that the body wraps", async () => {
      const slug = fresh("slug");
      await run(sql`INSERT INTO accounts (slug) VALUES (${slug})`);
      const failed = cell.transaction(async (tx) => {
        try {
          await tx.db.insert(accounts).values({ slug });
        } catch (error) {
          throw new Error("sign-up failed", { cause: error });
        }
      });
      const error = await thrownBy(failed);
      expect(fieldsOf(toValidationErrors(error))).toEqual(["accounts undefined slug: taken"]);
      const again = new Error("the request failed", { cause: error });
      expect(fieldsOf(toValidationErrors(again))).toEqual(["accounts undefined slug: taken"]);
    });

    test("the table's schema decides which table it is", async () => {
      const username = fresh("name");
      const insert = () => cell.transaction((tx) => tx.insert(elsewhere, { username }));
      await insert();
      const [only, ...others] = toValidationErrors(await thrownBy(insert()));
      expect(others).toEqual([]);
      expect(only).toMatchObject({ table: "accounts", field: "username" });
      // The other table `accounts` has no such name.
      await run(sql`INSERT INTO accounts (username) VALUES (${username})`);
    });

    test("a name that drizzle's `casing` made is recognized", async () => {
      const userName = fresh("name");
      const insert = () => cell.transaction((tx) => tx.insert(cased, { userName }));
      await insert();
      expect(fieldsOf(toValidationErrors(await thrownBy(insert())))).toEqual([
        "cased undefined userName: taken",
      ]);
    });

    test("an upsert takes a key that a migration adds later, and refuses other columns", async () => {
      const path = fresh("path");
      const row = { tenant: 3, path, first: `${path}-1`, last: `${path}-2`, email: `${path}@x.io` };
      const upsert = (...key: (keyof typeof row)[]) =>
        cell.transaction((tx) => tx.upsert(accounts, key, row));
      await run(sql`CREATE UNIQUE INDEX adults ON accounts (first) WHERE tenant > 18`);
      for (const key of [["first"], ["email"], ["tenant"], ["last", "first"]] as const)
        await expect(upsert(...key)).rejects.toThrow(`of a unique key of accounts, not [${key.join(", ")}]`);
      const { id } = await upsert("path", "tenant");
      await run(sql`CREATE UNIQUE INDEX whole ON accounts (first, last) INCLUDE (tenant)`);
      expect(await upsert("last", "first")).toMatchObject({ id });
    });

    test("a key of a table that is not claimable is no field error", async () => {
      const username = fresh("name");
      const insert = () => cell.transaction((tx) => tx.db.insert(logs).values({ username }));
      await insert();
      const error = await thrownBy(insert());
      expect(error).toBeInstanceOf(Error);
      expect(toValidationErrors(error)).toEqual([]);
    });
  });
}
