/** The steps that make the tables of an object, and tables that this code doesn't know. */
import { expect, test } from "vitest";
import { META_TABLE, readMeta, writeMeta } from "../../src/core/meta.ts";
import { migrate, UnknownTables, type Steps } from "../../src/core/tables.ts";
import { NodeSql } from "../../src/node-host/node-sql.ts";

const one = ["CREATE TABLE one (n INTEGER)", "INSERT INTO one VALUES (1)"];
const two = ["INSERT INTO one VALUES (2)", "INSERT INTO one VALUES (3)"];

const rowsIn = (sql: NodeSql): number[] => sql.all<{ n: number }>("SELECT n FROM one").map(({ n }) => n);

const store = (sql: NodeSql, name: string, value: string | number): void =>
  sql.transaction(["migrate"], () => writeMeta(sql, name, value));

test("[M5] tables are made by the steps that are new, and a step that fails leaves nothing", () => {
  const sql = new NodeSql();
  migrate(sql, [one]);
  migrate(sql, [one]);
  expect(rowsIn(sql)).toEqual([1]);
  expect(() => migrate(sql, [one, two, ["INSERT INTO one VALUES (4)", "no statement"]])).toThrow();
  expect(rowsIn(sql)).toEqual([1, 2, 3]);
  migrate(sql, [one, two, ["INSERT INTO one VALUES (5)"]]);
  expect(rowsIn(sql)).toEqual([1, 2, 3, 5]);
  expect(readMeta(sql, "tables")).toBe('{"steps":3,"needs":1}');
});

test("[M5] older code works with tables that have more steps than it knows", () => {
  const sql = new NodeSql();
  migrate(sql, [one, two]);
  migrate(sql, [one]);
  expect(rowsIn(sql)).toEqual([1, 2, 3]);
  expect(readMeta(sql, "tables")).toBe('{"steps":2,"needs":1}');
});

test("[M5] steps that are added leave the number of those that code must know", () => {
  const sql = new NodeSql();
  migrate(sql, [one, two]);
  store(sql, "tables", '{"steps":2,"needs":2}');
  migrate(sql, [one, two, []]);
  expect(readMeta(sql, "tables")).toBe('{"steps":3,"needs":2}');
});

test.each([
  [
    "that need a step it does not know",
    "tables",
    '{"steps":3,"needs":3}',
    /need a newer version.* 3 .* knows 2/,
  ],
  ["of a version before 0.2.0", "schema_version", 5, /before 0\.2\.0.* `leasehold backup create`/],
])("[M5] code refuses tables %s, and changes nothing", (_, name, value, reason) => {
  const sql = new NodeSql();
  sql.all(META_TABLE);
  store(sql, name, value);
  const steps: Steps = [one, two];
  expect(() => migrate(sql, steps)).toThrow(UnknownTables);
  expect(() => migrate(sql, steps)).toThrow(reason);
  expect(sql.all("SELECT name, value FROM meta")).toEqual([{ name, value }]);
  expect(() => rowsIn(sql)).toThrow("no such table");
});
