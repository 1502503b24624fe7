/** What `leasehold/cell` exports. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import * as cell from "../../../src/users/cell/index.ts";
import * as client from "../../../src/users/client/index.ts";

const folder = join(import.meta.dirname, "../../../src/users/cell");

test("leasehold/cell exports every error class that its calls throw, as leasehold/client does", () => {
  const shared = Object.entries(client).filter(([name]) => name.endsWith("Error"));
  expect(shared.length).toBeGreaterThan(1);
  for (const [name, value] of shared) expect(cell, name).toHaveProperty(name, value);
});

test("leasehold/cell exports its own error classes", () => {
  const declared = readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts"))
    .flatMap((name) => [
      ...readFileSync(join(folder, name), "utf8").matchAll(/export class (\w+) extends (\w+)/g),
    ])
    .filter(([, , base = ""]) => base.endsWith("Error"))
    .map(([, name = ""]) => name);
  expect(declared).toContain("BulkError");
  expect(Object.keys(cell)).toEqual(expect.arrayContaining(declared));
});
