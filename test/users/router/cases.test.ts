/** Checks that the page of routing cases and the test titles have the same numbers. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const root = join(import.meta.dirname, "../../..");
const page = readFileSync(join(root, "docs/internals/routing-cases.md"), "utf8");
const listed = [...page.matchAll(/^(\d+)\. /gm)].map(([, number]) => Number(number));

/** The numbers in the titles of tests, which begin with the number, after the rules. */
function tested(): Set<number> {
  const files = readdirSync(join(root, "test"), { recursive: true, encoding: "utf8" });
  return new Set(
    files
      .filter((name) => name.endsWith(".ts"))
      .flatMap((name) => [
        ...readFileSync(join(root, "test", name), "utf8").matchAll(/"(?:\[[A-Z]\d+\] ?)*case (\d+): /g),
      ])
      .map(([, number]) => Number(number)),
  );
}

const inOrder = (numbers: Iterable<number>): number[] => [...numbers].toSorted((a, b) => a - b);

test("every case of routing is listed once, in order", () => {
  expect(listed).toEqual(Array.from({ length: 23 }, (_, index) => index + 1));
});

test("every case of routing has a test, and no test has another case", () => {
  expect(inOrder(tested())).toEqual(listed);
});
