import { cloudflareTest, readD1Migrations } from "@cloudflare/vitest-plugin";
import { existsSync, statfsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

const at = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

/** Long enough for a secret, and plainly not one. */
const TEST_SECRET = "signing-secret-of-the-tests-and-of-nothing-else";

/** Thousands of small databases wait for the disk and for nothing else. No test pulls its plug, so memory will do where there is enough of it. */
const MEMORY = "/dev/shm";
const MEMORY_BYTES = 2 ** 31;
if (existsSync(MEMORY) && statfsSync(MEMORY).bavail * statfsSync(MEMORY).bsize >= MEMORY_BYTES)
  process.env["TMPDIR"] = MEMORY;

// Where wrangler looks for the secrets that wrangler.toml requires.
process.env["LEASEHOLD_SIGNING_SECRET"] = TEST_SECRET;

/** What takes longer hangs. How fast a machine is decides no test. */
const patience = { testTimeout: 120_000, hookTimeout: 120_000, expect: { poll: { timeout: 60_000 } } };

export default defineConfig({
  test: {
    // What passing tests log is noise; what failing ones log is a clue.
    silent: "passed-only",
    // The Worker's own log: thousands of lines, and what they say is tested elsewhere.
    onConsoleLog: (line) => !line.startsWith('{"event":'),
    projects: [
      {
        test: {
          ...patience,
          name: "node",
          globalSetup: ["test/support/databases/setup.ts", "test/support/browser/setup.ts"],
          include: [
            "test/{bench,core,cell,client,demo,examples,scripts,testing}/**/*.test.ts",
            "test/rigs/{cell-crash,crash,fuzz,history,sim}/**/*.test.ts",
          ],
        },
      },
      {
        plugins: [
          cloudflareTest(async () => ({
            wrangler: { configPath: at("wrangler.toml") },
            miniflare: {
              bindings: {
                LEASEHOLD_SIGNING_SECRET: TEST_SECRET,
                TEST_MIGRATIONS: await readD1Migrations(at("migrations")),
              },
            },
          })),
        ],
        test: {
          ...patience,
          name: "workerd",
          include: ["test/{objects,http,auth,projections}/**/*.test.ts"],
        },
      },
      {
        plugins: [
          cloudflareTest(async () => ({
            main: at("test/rigs/faults/worker.ts"),
            wrangler: { configPath: at("wrangler.toml") },
            miniflare: {
              d1Databases: { LANE_0: "lane-0", LANE_1: "lane-1", LANE_2: "lane-2", LANE_3: "lane-3" },
              bindings: {
                LEASEHOLD_SHARDS: "2",
                LEASEHOLD_SIGNING_SECRET: TEST_SECRET,
                TEST_MIGRATIONS: await readD1Migrations(at("migrations")),
              },
            },
          })),
        ],
        test: {
          ...patience,
          name: "faults",
          include: ["test/rigs/faults/**/*.test.ts"],
          maxConcurrency: 6,
        },
      },
    ],
  },
});
