/**
 * Runs before the tests and names the programs whose tests are skipped, so that a skipped test has a visible
 * reason.
 */
import { systemPrograms } from "./programs.ts";

export default function reportMissing(): void {
  for (const { name, neededBy, isInstalled } of systemPrograms)
    if (!isInstalled())
      process.stderr.write(`\n${name} is missing; needed by ${neededBy}. Install it with npm run setup.\n`);
}
