/** A database of the host: its statements, its transactions, and what it tells of its writes. */
import { beforeEach, describe, expect, test } from "vitest";
import { DatabaseSync } from "node:sqlite";
import { SqliteDatabase } from "../../../src/hosts/node/sqlite-database.ts";
import { sizesIn } from "../../support/private-fields.ts";

let writes: number;
let failures: unknown[];
let database: SqliteDatabase;

beforeEach(() => {
  writes = 0;
  failures = [];
  database = new SqliteDatabase(new DatabaseSync(":memory:"), {
    isDurable: true,
    written: () => (writes += 1),
    flush: async () => {},
    failed: (error) => failures.push(error),
    closed: () => {},
  });
  database.all("CREATE TABLE t (n INTEGER PRIMARY KEY)");
  writes = 0;
});

const insert = (n: number): unknown => database.all("INSERT INTO t VALUES (?)", n);
const rows = (): unknown[] => database.all<{ n: number }>("SELECT n FROM t").map(({ n }) => n);

describe("a write", () => {
  test("is told when it is complete: at once, or at the end of its transaction", () => {
    insert(1);
    expect(writes).toBe(1);
    database.transaction(() => {
      insert(2);
      insert(3);
      expect(writes).toBe(1);
    });
    expect(writes).toBe(2);
    database.all("WITH more AS (SELECT 4 AS n) INSERT INTO t SELECT n FROM more");
    expect(writes).toBe(3);
  });

  test("is not told of reads, nor of a transaction that is rolled back", () => {
    database.all("SELECT n FROM t WHERE n IN (WITH a AS (SELECT 1 AS n) SELECT n FROM a)");
    database.transaction(() => rows());
    const stop = new Error("stop");
    expect(() =>
      database.transaction(() => {
        insert(1);
        throw stop;
      }),
    ).toThrow(stop);
    expect([writes, rows(), database.isInTransaction]).toEqual([0, [], false]);
    expect(failures).toEqual([]);
  });
});

test("an error of SQLite is told once per access, and thrown", () => {
  insert(1);
  expect(() => insert(1)).toThrow("UNIQUE");
  expect(() => database.transaction(() => insert(1))).toThrow("UNIQUE");
  expect(failures).toHaveLength(2);
  database.all("BEGIN");
  expect(() => database.transaction(() => insert(2))).toThrow("within a transaction");
  expect(failures).toHaveLength(3);
});

test("[M6] the number of prepared statements is limited, and those in use are kept", () => {
  for (let n = 0; n < 1_000; n += 1) {
    expect(database.all(`SELECT ${n} AS n`)).toEqual([{ n }]);
    expect(rows()).toEqual([]);
  }
  expect(sizesIn([database]).sizes.get("SqliteDatabase.#statements")).toEqual([512]);
});

test("numbered parameters may be used in any order, and more than once", () => {
  const sql = "SELECT ?2 AS a, ?1 AS b, ?2 || ?3 AS c";
  for (const first of ["x", "y"])
    expect(database.all(sql, first, "2", null)).toEqual([{ a: "2", b: first, c: null }]);
});

test("its size leaves out free pages", () => {
  const empty = database.sizeBytes();
  database.transaction(() => {
    for (let n = 0; n < 5_000; n += 1) insert(n);
  });
  expect(database.sizeBytes()).toBeGreaterThan(empty + 20_000);
  database.all("DELETE FROM t");
  expect(database.sizeBytes()).toBe(empty);
});
