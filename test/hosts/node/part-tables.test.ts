/**
 * Parts of one database: which names a statement gets, and that no part reaches another one.
 * test/support/in-parts.ts checks every statement that a test of the core runs.
 */
import { DatabaseSync } from "node:sqlite";
import { beforeEach, describe, expect, test } from "vitest";
import { directorySchema } from "../../../src/coordinator/kernel/directory/schema.ts";
import { ledgerSchema } from "../../../src/coordinator/kernel/ledger/schema.ts";
import { migrate } from "../../support/migrate.ts";
import { shardSchema } from "../../../src/coordinator/kernel/shard/schema.ts";
import { NodeSql, SqliteDatabase } from "../../../src/hosts/node/sqlite-database.ts";
import { inPart, PartTables } from "../../../src/hosts/node/part-tables.ts";

describe("the names of a statement", () => {
  test.each([
    [
      "SELECT lease.lease, lease FROM lease WHERE lease IN (SELECT lease FROM hold)",
      'SELECT lease.lease, lease FROM "p/lease" AS lease WHERE lease IN (SELECT lease FROM "p/hold" AS hold)',
    ],
    [
      "SELECT value FROM lease AS l, json_each(l.epochs) AS e, hold WHERE f(l.a, e.b)",
      'SELECT value FROM "p/lease" AS l, json_each(l.epochs) AS e, "p/hold" AS hold WHERE f(l.a, e.b)',
    ],
    [
      "UPDATE lease INDEXED BY by_time SET lease = 'FROM hold' -- FROM hold",
      `UPDATE "p/lease" AS lease INDEXED BY "p/by_time" SET lease = 'FROM hold' -- FROM hold`,
    ],
    [
      "INSERT INTO meta (a) VALUES (?) ON CONFLICT (a) DO UPDATE SET b = excluded.b",
      'INSERT INTO "p/meta" AS meta (a) VALUES (?) ON CONFLICT (a) DO UPDATE SET b = excluded.b',
    ],
    [
      "WITH h (a, b) AS (VALUES (1, 2)), late AS (SELECT 1 FROM hold) SELECT 1 FROM h JOIN late USING (a)",
      'WITH h (a, b) AS (VALUES (1, 2)), late AS (SELECT 1 FROM "p/hold" AS hold) ' +
        "SELECT 1 FROM h JOIN late USING (a)",
    ],
    [
      "DELETE FROM hold WHERE a IS NOT DISTINCT FROM lease RETURNING lease",
      'DELETE FROM "p/hold" AS hold WHERE a IS NOT DISTINCT FROM lease RETURNING lease',
    ],
    ["CREATE TABLE IF NOT EXISTS hold (a, b)", 'CREATE TABLE IF NOT EXISTS "p/hold" (a, b)'],
    ["CREATE UNIQUE INDEX i ON hold (a) WHERE b", 'CREATE UNIQUE INDEX "p/i" ON "p/hold" (a) WHERE b'],
    ["ALTER TABLE lease ADD COLUMN lease TEXT", 'ALTER TABLE "p/lease" ADD COLUMN lease TEXT'],
    ["BEGIN", "BEGIN"],
  ])("%s", (sql, expected) => {
    expect(inPart(sql, "p")).toBe(expected);
  });
});

describe("parts", () => {
  let connection: DatabaseSync;
  let tables: PartTables;

  const part = (name: string): SqliteDatabase => new SqliteDatabase(connection, undefined, { name, tables });

  beforeEach(() => {
    connection = new DatabaseSync(":memory:");
    tables = new PartTables(connection);
  });

  test("of the same kind have the same tables, and rows of their own", () => {
    const [one, two, bare] = [part("cell-1"), part("cell-2"), part("")];
    for (const database of [one, two]) migrate(new NodeSql(database), ledgerSchema);
    migrate(new NodeSql(part("shard-0")), shardSchema);
    migrate(new NodeSql(part("directory")), directorySchema);
    bare.all("CREATE TABLE meta (name)");
    one.transaction(() => void one.all("INSERT INTO meta (name, value) VALUES ('a', 1)"));
    const names = (database: SqliteDatabase): unknown[] =>
      database.all<{ name: string }>("SELECT name FROM meta ORDER BY name").map(({ name }) => name);
    expect([names(one), names(two), names(bare)]).toEqual([["a", "tables"], ["tables"], []]);
    one.transaction(() => void one.all("DELETE FROM meta"));
    expect([names(one), names(two)]).toEqual([[], ["tables"]]);
  });

  test("cannot reach each other's tables, by any name", () => {
    part("cell-1").all("CREATE TABLE t (a)");
    part("").all("CREATE TABLE bare (a)");
    for (const name of ["cell-2", "cell-11", ""]) {
      for (const sql of [
        `SELECT a FROM "cell-1/t"`,
        `SELECT count(*) FROM "cell-1/t"`,
        `INSERT INTO "cell-1/t" VALUES (1)`,
        `UPDATE "cell-1/t" SET a = 1`,
        `DELETE FROM "cell-1/t"`,
        `DROP TABLE "cell-1/t"`,
        `ALTER TABLE "cell-1/t" ADD b`,
        `CREATE INDEX i ON "cell-1/t" (a)`,
      ])
        expect(() => part(name).all(sql), `${name}: ${sql}`).toThrow(
          /no such table|prohibited|not authorized/,
        );
    }
    for (const sql of ["SELECT * FROM bare", "SELECT * FROM sqlite_schema"])
      expect(() => part("cell-1").all(sql), sql).toThrow(/no such table|prohibited|not authorized/);
    expect(connection.prepare('SELECT count(*) AS n FROM "cell-1/t"').get()).toEqual({ n: 0 });
  });

  test("are refused a table that the change of names has missed", () => {
    connection.exec('CREATE TABLE "cell-2/t" (a)');
    // A name that stays, because it looks like that of a temporary table.
    const sql = `WITH x AS (SELECT 1) SELECT a FROM x, (SELECT a FROM "cell-2/t")`;
    expect(() => tables.prepare(sql, "")).toThrow(/prohibited|not authorized/);
  });
});
