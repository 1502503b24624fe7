import { expect, it } from "vitest";
import { readOptions } from "../../demo/options.ts";

it("reads options, and has defaults for them", () => {
  expect(readOptions([])).toEqual({ names: 10_000, seed: 1, keep: false, help: false });
  expect(readOptions(["--names", "500", "--seed=7", "--keep"])).toEqual({
    names: 500,
    seed: 7,
    keep: true,
    help: false,
  });
  expect(readOptions(["--help"]).help).toBe(true);
});

it.each([
  ["--nmaes", "500"],
  ["500"],
  ["--names"],
  ["--names", "99"],
  ["--names", "10001"],
  ["--names", "1e3"],
  ["--names", ""],
  ["--seed", "-1"],
  ["--seed", "4294967296"],
  ["--keep=yes"],
])("refuses %s %s", (...args) => {
  expect(() => readOptions(args.filter((arg) => arg !== undefined))).toThrow(Error);
});
