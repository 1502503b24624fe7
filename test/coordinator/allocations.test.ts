/**
 * Counts the objects that a shard makes for an exchange. A hook costs one walk of an array when nobody has
 * anything to do, so the capabilities must not add objects to each name.
 */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";

/** Without compilers that work in the background, the counts do not depend on the machine. */
const INTERPRETED = ["--no-opt", "--no-maglev", "--no-sparkplug"];

test("an exchange of 16 names makes few objects, and the capabilities hardly any", async () => {
  const program = join(import.meta.dirname, "objects-of-exchange.ts");
  const { stdout } = await promisify(execFile)(process.execPath, [...INTERPRETED, program]);
  const { all, ofCapabilities } = JSON.parse(stdout) as { all: number; ofCapabilities: number };
  expect(all).toBeLessThan(58 * 16);
  expect(ofCapabilities).toBeLessThan(2 * 16);
});
