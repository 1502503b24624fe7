/** The module with the migrations equals the files. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { migrations } from "../../src/node-host/migrations.ts";

const folder = join(import.meta.dirname, "../../migrations");
const files = readdirSync(folder).filter((file) => file.endsWith(".sql"));

test("src/node-host/migrations.ts equals the files of the migrations", () => {
  expect(migrations).toEqual(files.toSorted().map((file) => readFileSync(join(folder, file), "utf8")));
});
