import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

const at = (path: string): string => fileURLToPath(import.meta.resolve(path));

/**
 * The tests that Stryker runs for each mutant: those of the core, in Node and without the Cloudflare plugin.
 */
export default defineConfig({
  root: at("../../.."),
  test: {
    include: ["test/core/**/*.test.ts"],
    // rules.test.ts only reads files, and unicode-data.test.ts checks tables at every code point.
    exclude: ["test/core/rules.test.ts", "test/core/canonical/unicode-data.test.ts"],
    setupFiles: [fileURLToPath(import.meta.resolve("./setup.ts"))],
    silent: true,
    // One worker for all files, because starting one for each takes longer than the tests.
    isolate: false,
    // The first run records which test reaches which mutant, and is slow.
    testTimeout: 30_000,
  },
});
