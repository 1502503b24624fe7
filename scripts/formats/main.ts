/**
 * `npm run check:formats`: compares everything that outlives a process with the last release, as `formats/`
 * describes it. With `--write`, it describes the version in package.json there, unless that is released.
 */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import {
  describeToday,
  differencesFrom,
  newestVersion,
  readDescription,
  writeDescription,
} from "./description.ts";
import { readAccepted, reportOf } from "./report.ts";
import { writeStates } from "./states.ts";

const root = join(import.meta.dirname, "../..");
const formats = join(root, "formats");

/** Returns what is wrong. Empty: nothing. */
async function run(): Promise<string> {
  const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { version: string };
  const isWriting = process.argv.includes("--write");
  const tag = `v${version}`;
  if (isWriting && execFileSync("git", ["tag", "--list", tag], { cwd: root, encoding: "utf8" }) !== "")
    return `the tag ${tag} exists, so ${version} is released: set the next version in package.json first`;
  const release = newestVersion(formats, isWriting ? version : undefined);
  if (release === undefined && !isWriting) return "formats/ describes no version";
  if (release !== undefined) {
    const folder = join(formats, release);
    const differences = await differencesFrom(readDescription(folder));
    const report = reportOf(release, differences, readAccepted(folder));
    const hint = `If ${version} is not released yet, describe it again: npm run check:formats -- --write`;
    if (report !== "") return release === version ? `${report}\n${hint}` : report;
  }
  if (isWriting) {
    writeDescription(join(formats, version), await describeToday());
    await writeStates(join(formats, version));
  }
  return "";
}

const report = await run();
if (report !== "") process.stderr.write(`${report}\n`);
process.exitCode = report === "" ? 0 : 1;
