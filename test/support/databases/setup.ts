/** Before the tests: installs the databases that they need where that asks nobody for anything, and says loudly what is missing then. */
import { join } from "node:path";
import { installWhereAllowed } from "../debian/install.ts";
import { areRequired, missingDatabases } from "./available.ts";

export default function setup(): void {
  if (missingDatabases().length > 0) installWhereAllowed(join(import.meta.dirname, "install.sh"));
  const outcome = areRequired ? "and the tests that need it FAIL" : "and the tests that need it are SKIPPED";
  for (const database of missingDatabases())
    process.stderr.write(
      `\n!!! ${database} is not installed, ${outcome}. test/support/databases/install.sh installs it on Debian.\n\n`,
    );
}
