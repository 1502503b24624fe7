import { relative } from "node:path";
import { fileURLToPath } from "node:url";

// Relative: Stryker runs the tests in a copy of the tree, and that copy's configuration is the one to take.
const vitestConfig = relative(
  import.meta.dirname,
  fileURLToPath(import.meta.resolve("./test/rigs/mutation/vitest.config.ts")),
);

/** Mutation tests of the core: docs/internals/mutation.md says what is mutated, what is not, and why. */
export default {
  mutate: ["src/core/**/*.ts", "!src/core/canonical/tables.ts", "!src/core/**/schema.ts"],
  plugins: ["@stryker-mutator/vitest-runner", "./test/rigs/mutation/ignore-texts.ts"],
  ignorers: ["texts"],
  testRunner: "vitest",
  // `related` would walk the imports of every file for each mutant; which test reaches it is known already.
  vitest: { configFile: vitestConfig, related: false },
  coverageAnalysis: "perTest",
  // Constants of a module, which only a new worker would see: they are few, and each would need every test.
  ignoreStatic: true,
  concurrency: 2,
  // A mutant that loops for ever: the tests of one take milliseconds, so this is patient also on a busy machine.
  timeoutMS: 5_000,
  // The file that Stryker would rewrite with an API that TypeScript 7 does not have. Nothing here reads one.
  tsconfigFile: "none",
  disableTypeChecks: false,
  ignorePatterns: ["demo", "dist", "migrations", ".leasehold", ".wrangler"],
  reporters: ["clear-text", "json", "html"],
  clearTextReporter: { allowColor: false, logTests: false, reportTests: false },
  jsonReporter: { fileName: ".stryker/report.json" },
  htmlReporter: { fileName: ".stryker/report.html" },
  tempDirName: ".stryker/tmp",
  cleanTempDir: "always",
};
