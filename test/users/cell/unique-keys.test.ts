/** How the columns of a unique key are found: in drizzle's declaration, and in the texts of databases. */
import { sql } from "drizzle-orm";
import { getTableConfig, pgTable, primaryKey, text, uniqueIndex } from "drizzle-orm/pg-core";
import { describe, expect, test } from "vitest";
import { claimable } from "../../../src/users/cell/claimable.ts";
import { asItIs } from "../../../src/users/cell/sql/connection.ts";
import { drizzleTable } from "../../../src/users/cell/sql/drizzle.ts";
import { duplicateIn as duplicateInMysql, duplicateKeyOf } from "../../../src/users/cell/mysql/failure.ts";
import { duplicateIn, keyPartsOf } from "../../../src/users/cell/postgres/failure.ts";
import { columnsOfKey, columnsOfText } from "../../../src/users/cell/sql/unique-keys.ts";
import { int, mysqlTable, varchar } from "drizzle-orm/mysql-core";

const people = pgTable(
  "people",
  {
    tenant: text("tenant").notNull(),
    number: text("number").notNull(),
    userName: text().unique(),
    email: text("e-mail"),
    text: text("text"),
  },
  (table) => [
    primaryKey({ columns: [table.tenant, table.number] }),
    uniqueIndex("by_column").on(sql`lower(${table.userName}) || ${sql`trim(${table.userName})`}`),
    uniqueIndex("by_text").on(sql`lower("e-mail")`),
    uniqueIndex("of_two").on(sql`${table.userName} || ${table.email}`),
    uniqueIndex("of_some").on(table.tenant, sql`lower(${table.email})`),
    uniqueIndex().on(table.email),
  ],
);

describe("a key that drizzle declares", () => {
  test.each([
    ["people_userName_unique", ["userName"]],
    // With drizzle's option `casing`.
    ["people_user_name_unique", ["userName"]],
    ["by_column", ["userName"]],
    ["by_text", ["email"]],
    ["of_two", []],
    ["of_some", ["tenant", "email"]],
    ["people_pkey", ["tenant", "number"]],
    ["people_tenant_number_pk", ["tenant", "number"]],
    ["another", undefined],
    ["", undefined],
  ])("%s has its columns", (name, columns) => {
    expect(columnsOfKey(people, getTableConfig(people), { name, primary: "people_pkey" })).toEqual(columns);
  });
});

describe("an expression in SQL", () => {
  test.each([
    ["tenant", ["tenant"]],
    ["lower(tenant)", ["tenant"]],
    ["lower((tenant)::text)", ["tenant"]],
    ["(tenant::character varying(80))", ["tenant"]],
    ['tenant COLLATE "text"', ["tenant"]],
    ["upper(\"e-mail\"::text) || 'tenant, it''s'", ["email"]],
    ["user_name", ["userName"]],
    ["`number`", ["number"]],
    ["text(tenant)", ["tenant"]],
    ["tenant || number", []],
    ["now()", []],
    ["tenants", []],
    ["", []],
  ])("%s is about its only column", (expression, columns) => {
    expect(columnsOfText(people, expression)).toEqual(columns);
  });
});

describe("PostgreSQL's detail", () => {
  test.each([
    ["Key (username)=(ada) already exists.", ["username"]],
    ["Key (tenant, lower(name))=(7, a)b(c) already exists.", ["tenant", " lower(name)"]],
    ["Key (\"odd )( name\", f(a, '(,'))=(x, y) already exists.", ['"odd )( name"', " f(a, '(,')"]],
    ["Schlüssel »(username)=(ada)« existiert bereits.", ["username"]],
    ["", []],
    ["Key is withheld.", []],
    ["(not closed", []],
  ])("%s names the parts of the key", (detail, parts) => {
    expect(keyPartsOf(detail)).toEqual(parts);
  });

  test("a table of another schema is another table", async () => {
    const table = claimable(people, {
      source: "RAILS_TABLE_USERS",
      id: "number",
      subject: { type: "USER", id: "number" },
      attributes: { userName: "USERNAMES" },
    });
    const violation = { schema: "public", table: "people", constraint: "people_userName_unique", detail: "" };
    const find = (given: typeof violation) => duplicateIn([drizzleTable(table)], given, async () => []);
    expect(await find(violation)).toEqual({ kind: "duplicate", table, columns: ["userName"] });
    expect(await find({ ...violation, table: "animals" })).toBeUndefined();
  });
});

describe("MySQL's message", () => {
  const animals = claimable(
    mysqlTable("animals", { id: int("id").primaryKey(), name: varchar("name", { length: 80 }).unique() }),
    {
      source: "RAILS_TABLE_USERS",
      subject: { type: "USER", id: "id" },
      attributes: { name: "USERNAMES" },
    },
  );
  const table = drizzleTable(animals);
  const duplicateOf = (error: Error, written?: typeof table) =>
    duplicateInMysql([table], error, written, asItIs);
  const violation = (message: string): Error =>
    Object.assign(new Error(message), { errno: 1062, sqlState: "23000" });

  test.each([
    ["Duplicate entry 'ada' for key 'animals.animals_name_unique'", "animals.animals_name_unique", ["name"]],
    ["Duplicate entry 'a' for key 'b' for key 'animals.name'", "animals.name", ["name"]],
    ["Doppelter Eintrag 'ada' für Schlüssel 'animals.name_2'", "animals.name_2", ["name"]],
    ["Duplicate entry '7' for key 'animals.PRIMARY'", "animals.PRIMARY", ["id"]],
    ["Duplicate entry '7' for key 'animals.other'", "animals.other", []],
  ])("%s names the table and the key", (message, key, columns) => {
    const error = new Error("Failed query", { cause: violation(message) });
    expect(duplicateKeyOf(error)).toBe(key);
    expect(duplicateOf(error)).toEqual({
      kind: "duplicate",
      table: animals,
      columns,
    });
  });

  test("without a table, the statement or the write must name it", () => {
    const error = violation("Duplicate entry 'ada' for key 'animals_name_unique'");
    const found = { kind: "duplicate", table: animals, columns: ["name"] };
    const of = (query: string): Error =>
      Object.assign(new Error("Failed query", { cause: error }), { query });
    expect(duplicateOf(error)).toBeUndefined();
    expect(duplicateOf(error, table)).toEqual(found);
    expect(duplicateOf(of("insert into `animals` values (?)"))).toEqual(found);
    expect(duplicateOf(of("update `zoo`.`animals` set"))).toEqual(found);
    expect(duplicateOf(of("insert into `logs` values (?)"))).toBeUndefined();
    expect(duplicateOf(new Error("another"), table)).toBeUndefined();
  });
});
