/** Builds the npm package in `dist/sdk`. */
import { join } from "node:path";
import { buildSdk } from "./sdk/build.ts";
import { entries } from "./sdk/entries.ts";

const root = join(import.meta.dirname, "..");

try {
  await buildSdk(root, entries, join(root, "dist/sdk"));
  console.log(`dist/sdk: ${entries.map(({ name }) => `leasehold/${name}`).join(", ")}`);
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}
