/** Before the tests: installs the browser where that asks nobody for anything, and says loudly when there is none. */
import { join } from "node:path";
import { areRequired } from "../databases/available.ts";
import { installWhereAllowed } from "../debian/install.ts";
import { findChromium } from "./chromium.ts";

export default function setup(): void {
  if (findChromium() === undefined) installWhereAllowed(join(import.meta.dirname, "install.sh"));
  if (findChromium() !== undefined) return;
  const outcome = areRequired ? "and the tests that need it FAIL" : "and the tests that need it are SKIPPED";
  process.stderr.write(
    `\n!!! There is no Chromium, ${outcome}. test/support/browser/install.sh installs it on Debian; CHROMIUM_PATH names another.\n\n`,
  );
}
