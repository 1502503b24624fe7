import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

const at = (path: string): string => fileURLToPath(import.meta.resolve(path));

const core = {
  include: ["test/common/**/*.test.ts", "test/coordinator/{capabilities,kernel}/**/*.test.ts"],
  // rules.test.ts only reads files, and unicode-data.test.ts checks tables at every code point.
  exclude: [
    "test/coordinator/capabilities/*/workerd/**",
    "test/coordinator/rules.test.ts",
    "test/common/canonical/unicode-data.test.ts",
  ],
};

const cell = {
  include: [
    "test/users/cell/*.test.ts",
    "test/users/cell/verification/*.test.ts",
    "test/users/cell/scenarios/{cell,verification}.test.ts",
    "test/users/cell/adapter/{pglite,stored-tables}.test.ts",
    "test/users/cell/postgres/{failure,nested-transaction}.test.ts",
  ],
};

/** The tests that Stryker runs for each mutant, in Node and without the Cloudflare plugin. */
export default defineConfig({
  root: at("../../.."),
  test: {
    ...(process.env["MUTATE"] === "cell" ? cell : core),
    setupFiles: [fileURLToPath(import.meta.resolve("./setup.ts"))],
    silent: true,
    // One worker for all files, because starting one for each takes longer than the tests.
    isolate: false,
    // The first run records which test reaches which mutant, and is slow.
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
});
