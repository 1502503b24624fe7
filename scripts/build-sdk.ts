/** Packs the npm package into `dist`, and prints the line that installs it. */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { buildSdk } from "./sdk/build.ts";
import { packSdk } from "./sdk/consumer.ts";
import { entries } from "./sdk/entries.ts";
import { installHelp } from "./sdk/install-line.ts";

const root = join(import.meta.dirname, "..");
const target = join(root, "dist");

// npm would install a folder as a link, and the package would find the drizzle-orm of this repository instead
// of the application's. So the folder does not stay.
const folder = mkdtempSync(join(tmpdir(), "leasehold-sdk-"));
try {
  await buildSdk(root, entries, folder);
  mkdirSync(target, { recursive: true });
  const tarball = packSdk(folder, target);
  console.log(
    `${relative(root, tarball)} has ${entries.map(({ name }) => `leasehold/${name}`).join(", ")}.\n`,
  );
  console.log(installHelp(tarball));
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}
