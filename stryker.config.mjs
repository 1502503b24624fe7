import { relative } from "node:path";
import { fileURLToPath } from "node:url";

// A relative path, because Stryker runs the tests in a copy of the tree, whose configuration must be used.
const vitestConfig = relative(
  import.meta.dirname,
  fileURLToPath(import.meta.resolve("./test/rigs/mutation/vitest.config.ts")),
);

const parts = {
  core: {
    mutate: [
      "src/coordinator/kernel/**/*.ts",
      "src/coordinator/capabilities/*/*.ts",
      "src/common/*.ts",
      "src/common/{canonical,types}/**/*.ts",
      "!src/common/canonical/tables.ts",
      "!src/{common,coordinator/kernel}/**/schema.ts",
    ],
    // Ends mutants that loop for ever. The tests of a mutant take milliseconds, so this is enough on a slow
    // machine.
    timeoutMS: 5_000,
  },
  cell: {
    // The tests of the other adapters need PostgreSQL or MariaDB, and take too long for every mutant.
    mutate: [
      "src/users/cell/**/*.ts",
      "!src/users/cell/{conformance,kysely,mysql,mysql2,pg,prisma}/**",
      "!src/users/cell/adapter/mysql.ts",
    ],
    // PGlite takes seconds to start.
    timeoutMS: 60_000,
  },
};

/** The part whose mutants are made. test/rigs/mutation/vitest.config.ts has its tests. */
const part = process.env.MUTATE ?? "core";
if (!Object.hasOwn(parts, part))
  throw new Error(`MUTATE must be ${Object.keys(parts).join(" or ")}, not ${part}`);

/** Mutation tests: docs/internals/mutation.md says what is mutated, what is not, and why. */
export default {
  ...parts[part],
  plugins: ["@stryker-mutator/vitest-runner", "./test/rigs/mutation/ignore-texts.ts"],
  ignorers: ["texts"],
  testRunner: "vitest",
  // `related` would walk the imports of every file for each mutant, but the tests that reach a mutant are
  // already known.
  vitest: { configFile: vitestConfig, related: false },
  coverageAnalysis: "perTest",
  // Mutants of module constants need a new worker and every test. They are few.
  ignoreStatic: true,
  concurrency: 2,
  // Stryker would rewrite this file with an API that TypeScript 7 does not have. It is not needed here.
  tsconfigFile: "none",
  disableTypeChecks: false,
  ignorePatterns: ["dist", "migrations", ".leasehold", ".wrangler"],
  reporters: ["clear-text", "json", "html"],
  clearTextReporter: { allowColor: false, logTests: false, reportTests: false },
  jsonReporter: { fileName: ".stryker/report.json" },
  htmlReporter: { fileName: ".stryker/report.html" },
  tempDirName: ".stryker/tmp",
  cleanTempDir: "always",
};
