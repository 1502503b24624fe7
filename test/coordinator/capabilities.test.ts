/** What the kernel and the capabilities import of each other. */
import { globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import * as kinds from "../../src/coordinator/capabilities/index.ts";
import type { Capability } from "../../src/coordinator/kernel/capability.ts";

const coordinator = join(import.meta.dirname, "../../src/coordinator");

/** The capabilities that some files import, without those of the Worker. */
function importedBy(pattern: string): string[] {
  const files = globSync(pattern, { cwd: coordinator }).filter((file) => !file.includes("/edge/"));
  expect(files).not.toEqual([]);
  const imported = files.flatMap((file) =>
    Array.from(
      readFileSync(join(coordinator, file), "utf8").matchAll(/(?:from|module) "(\.[^"]+)"/g),
      ([, path = ""]) => join(dirname(file), path),
    ),
  );
  const names = imported.map((path) => /^capabilities\/([^/]+)\//.exec(path)?.[1] ?? "");
  return [...new Set(names)].filter((name) => name !== "").toSorted();
}

const capabilities: readonly Capability[] = kinds.capabilities;

test("the kernel imports no capability", () => {
  expect(importedBy("kernel/**/*.ts")).toEqual([]);
});

describe.each(capabilities)("$name", ({ name, needs = [] }) => {
  test("imports only those capabilities that it declares to need", () => {
    const imported = importedBy(`capabilities/${name}/**/*.ts`).filter((each) => each !== name);
    expect(imported.filter((each) => !needs.includes(each))).toEqual([]);
  });
});
