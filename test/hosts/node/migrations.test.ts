/** The names and the texts of the migrations equal the files. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { SqliteDatabase } from "../../../src/hosts/node/sqlite-database.ts";
import { migrateProjection, migrationTexts } from "../../../src/hosts/node/migrations.ts";
import { migrationNames } from "../../../src/coordinator/d1/migrations.ts";

const folder = join(import.meta.dirname, "../../../migrations");
const files = readdirSync(folder)
  .filter((file) => file.endsWith(".sql"))
  .toSorted();

test("src/coordinator/d1/migrations.ts names the files in order", () =>
  expect(migrationNames).toEqual(files));

test("src/hosts/node/migrations.ts equals the files", () => {
  expect(migrationTexts).toEqual(
    Object.fromEntries(files.map((name) => [name, readFileSync(join(folder, name), "utf8")])),
  );
});

test("each migration is applied once, and those of a newer version stay", () => {
  const database = new SqliteDatabase();
  const applied = (): string[] =>
    database.all<{ name: string }>("SELECT name FROM d1_migrations ORDER BY id").map(({ name }) => name);
  migrateProjection(database);
  expect(applied()).toEqual(files);
  database.all("INSERT INTO d1_migrations (name) VALUES ('9999_later.sql')");
  migrateProjection(database);
  expect(applied()).toEqual([...files, "9999_later.sql"]);
  database.close();
});
