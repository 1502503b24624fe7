import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

const at = (path: string): string => fileURLToPath(import.meta.resolve(path));

/** The core's own tests, in Node and without the Cloudflare plugin: what Stryker runs against every mutant. */
export default defineConfig({
  root: at("../../.."),
  test: {
    include: ["test/core/**/*.test.ts"],
    // The first reads files and no code; the second proves tables, at every code point.
    exclude: ["test/core/rules.test.ts", "test/core/canonical/unicode-data.test.ts"],
    setupFiles: [fileURLToPath(import.meta.resolve("./setup.ts"))],
    silent: true,
    // One worker for all files of a run: starting one for each costs more than the tests themselves.
    isolate: false,
    // The first run counts which test reaches which mutant, and is slow for it.
    testTimeout: 30_000,
  },
});
