/** `npm run setup`: installs the Debian packages that some tests need. `--help` says how. */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { parsed, runProgram } from "../options.ts";
import { systemPrograms } from "./programs.ts";

const USAGE = `npm run setup -- [options]

  --dry-run   says what is missing, and installs nothing
  --help      this

Installs the Debian packages that some tests need, without starting a service. Does nothing when all is there.
`;

const say = (line: string): void => void process.stdout.write(`${line}\n`);

const options = {
  "dry-run": { type: "boolean", default: false },
  help: { type: "boolean", default: false },
} as const;

async function main(): Promise<boolean> {
  const { values } = parsed(() => parseArgs({ options }));
  if (values.help) return (say(USAGE), true);
  const missing = systemPrograms.filter((program) => !program.isInstalled());
  if (missing.length === 0) {
    say(`setup: nothing to install: ${systemPrograms.map(({ name }) => name).join(", ")} are there`);
    return true;
  }
  for (const { name, neededBy } of missing) say(`setup: ${name} is missing; needed by ${neededBy}`);
  const packages = missing.flatMap((program) => program.packages);
  if (values["dry-run"]) return (say(`setup: would install ${packages.join(" ")}`), true);
  return install(packages);
}

/** A machine where nothing can be installed is no failure: its tests are skipped, and counted. */
function install(packages: readonly string[]): boolean {
  const obstacle = findObstacle();
  if (obstacle !== undefined) {
    say(`setup: ${obstacle}, so nothing was installed; tests that need these programs are skipped`);
    say(`setup: on Debian, as root: apt-get install --no-install-recommends ${packages.join(" ")}`);
    return true;
  }
  say(`setup: installing the Debian packages ${packages.join(" ")}; no service is started`);
  const { status } = spawnSync(join(import.meta.dirname, "apt-install.sh"), packages, { stdio: "inherit" });
  if (status !== 0) {
    say("setup: apt-get failed; its output is above");
    return false;
  }
  const absent = systemPrograms.filter((program) => !program.isInstalled());
  for (const { name } of absent) say(`setup: ${name} is still missing after the installation`);
  return absent.length === 0;
}

function findObstacle(): string | undefined {
  if (!existsSync("/usr/bin/apt-get")) return "this system has no apt-get";
  if (process.getuid?.() === 0) return undefined;
  const sudo = spawnSync("sudo", ["-n", "true"], { stdio: "ignore" });
  return sudo.status === 0 ? undefined : "this user is not root and cannot use sudo without a password";
}

runProgram(USAGE, main);
