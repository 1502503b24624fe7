/** `npm run setup`: installs the Debian packages that some tests need. It says what it does, and does nothing when all is there. */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { systemPrograms } from "./programs.ts";

const say = (line: string): void => void process.stdout.write(`${line}\n`);

const missing = systemPrograms.filter((program) => !program.isInstalled());
if (missing.length === 0) {
  say(`setup: nothing to do: ${systemPrograms.map(({ name }) => name).join(", ")} are installed`);
} else {
  for (const { name, neededBy } of missing) say(`setup: ${name} is missing; needed by ${neededBy}`);
  process.exitCode = install(missing.flatMap(({ packages }) => packages));
}

/** Answers the exit code. A machine where nothing can be installed is no error: its tests are skipped, and counted. */
function install(packages: readonly string[]): number {
  const unable = reasonNotToInstall();
  if (unable !== undefined) {
    say(`setup: ${unable}, so nothing was installed; tests that need these programs are skipped`);
    say(`setup: on Debian, as root: apt-get install --no-install-recommends ${packages.join(" ")}`);
    return 0;
  }
  say(`setup: installing these Debian packages, without starting a service: ${packages.join(" ")}`);
  const { status } = spawnSync(join(import.meta.dirname, "apt-install.sh"), packages, { stdio: "inherit" });
  if (status !== 0) {
    say("setup: apt-get failed; its output is above");
    return 1;
  }
  const absent = systemPrograms.filter((program) => !program.isInstalled());
  for (const { name } of absent) say(`setup: ${name} is still missing after the installation`);
  return absent.length === 0 ? 0 : 1;
}

function reasonNotToInstall(): string | undefined {
  if (!existsSync("/usr/bin/apt-get")) return "this system has no apt-get";
  if (process.getuid?.() === 0) return undefined;
  const sudo = spawnSync("sudo", ["-n", "true"], { stdio: "ignore" });
  return sudo.status === 0 ? undefined : "this user is not root and cannot use sudo without a password";
}
