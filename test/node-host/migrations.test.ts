/** The module with the migrations equals the files. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { SqliteDatabase } from "../../src/node-host/sqlite-database.ts";
import { migrate, migrations } from "../../src/node-host/migrations.ts";

const folder = join(import.meta.dirname, "../../migrations");
const files = readdirSync(folder).filter((file) => file.endsWith(".sql"));

test("src/node-host/migrations.ts equals the files of the migrations", () => {
  expect(migrations).toEqual(
    files.toSorted().map((name) => ({ name, sql: readFileSync(join(folder, name), "utf8") })),
  );
});

test("each migration is applied once, and those of a newer version are refused", () => {
  const database = new SqliteDatabase();
  migrate(database);
  migrate(database);
  expect(database.all("SELECT name FROM d1_migrations")).toEqual(migrations.map(({ name }) => ({ name })));
  database.all("INSERT INTO d1_migrations (name) VALUES ('9999_later.sql')");
  expect(() => migrate(database)).toThrow("9999_later.sql");
  database.close();
});
