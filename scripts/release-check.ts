/**
 * `npm run release:check`: checks the commit that is to be tagged, one line for each item. `--quick` leaves
 * out the commands, which take long.
 */
import { spawnSync } from "node:child_process";
import { closeSync, mkdirSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { FORMATS } from "../src/coordinator/kernel/formats.ts";
import { describeToday, differencesFrom } from "./formats/description.ts";
import { items, type Release } from "./release/items.ts";
import { runItems, type Check } from "./release/run-items.ts";

const COMMANDS = ["check", "test", "build", "build:sdk", "check:sdk", "upgrade"];

const root = join(import.meta.dirname, "..");
const logs = join(root, "dist/release-check");

/** Runs a script of package.json. Its output goes to a file. */
function runScript(script: string): string | undefined {
  const path = join(logs, `${script.replace(":", "-")}.log`);
  const log = openSync(path, "w");
  const { status } = spawnSync("npm", ["run", script], { cwd: root, stdio: ["ignore", log, log] });
  closeSync(log);
  return status === 0 ? undefined : `its output is in ${path}`;
}

const { values } = parseArgs({ options: { quick: { type: "boolean", default: false } } });
const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { version: string };
const release: Release = { root, version, formats: FORMATS, describe: describeToday, differencesFrom };
if (!values.quick) mkdirSync(logs, { recursive: true });
const checks: [string, Check][] = [
  ...Object.entries(items).map(([name, item]): [string, Check] => [name, () => item(release)]),
  ...(values.quick ? [] : COMMANDS).map((script): [string, Check] => [
    `npm run ${script}`,
    () => runScript(script),
  ]),
];
const isRight = await runItems(Object.fromEntries(checks), (line) => process.stdout.write(`${line}\n`));
process.exitCode = isRight ? 0 : 1;
