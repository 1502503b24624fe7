import { cloudflareTest, readD1Migrations } from "@cloudflare/vitest-plugin";
import { existsSync, statfsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import { slice } from "./test/support/slice.ts";

const at = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

/** Long enough for a secret, and clearly not a real one. */
const TEST_SECRET = "signing-secret-of-the-tests-and-of-nothing-else";

/**
 * Thousands of small databases wait only for the disk. No test needs them to survive a power failure, so they
 * are in memory if there is enough of it.
 */
const MEMORY = "/dev/shm";
const MEMORY_BYTES = 2 ** 31;
if (existsSync(MEMORY) && statfsSync(MEMORY).bavail * statfsSync(MEMORY).bsize >= MEMORY_BYTES)
  process.env["TMPDIR"] = MEMORY;

// The processes of the tests need not ask Git again.
const testSlice = (process.env["TEST_SLICE"] ||= String(slice));

// The processes of the tests load the same modules hundreds of times. This saves most of their compilation.
process.env["NODE_COMPILE_CACHE"] ??= at("node_modules/.cache/node-compile");

// wrangler reads the secrets that wrangler.toml requires from the environment.
process.env["LEASEHOLD_SIGNING_SECRET"] = TEST_SECRET;

/** A test that takes longer hangs. No test depends on the speed of the machine. */
const patience = { testTimeout: 300_000, hookTimeout: 300_000, expect: { poll: { timeout: 120_000 } } };

/** Most files load the same large modules, so they share a process. The setup checks what they leave. */
const shared = { isolate: false, setupFiles: ["test/support/setup/same-globals.ts"] };

/** Tests that `npm run test:deep` runs, because they take long and rarely find what others don't. */
const left = testSlice === "all" ? [] : ["**/*.deep.test.ts"];

/**
 * Tests that start processes, databases or a browser, or that take seconds. `npm run test:fast` leaves them
 * out.
 */
const system = [
  "test/coordinator/auth/certificates/**/*.test.ts",
  "test/{bench,examples,scripts}/**/*.test.ts",
  "test/hosts/{router,standalone,workerd}/**/*.test.ts",
  "test/users/cell/{adapter,kysely,mysql,postgres,prisma,scenarios}/**/*.test.ts",
  "test/cli/{backup,restore}.test.ts",
  "test/cli/program/**/*.test.ts",
  "test/users/conformance/standalone.test.ts",
  "test/coordinator/console/browser/**/*.test.ts",
  "test/hosts/grpc/**/*.test.ts",
  "test/users/cell/ledger-history.test.ts",
  "test/rigs/{cell-crash,crash,fuzz,routing,stale-reads,transfers,upgrade}/**/*.test.ts",
  "test/users/router/first-page.test.ts",
  "test/users/testing/{hours,status,webhooks}.test.ts",
  "test/coordinator/tracing/{exporter,requests}.test.ts",
];

/** Packages whose modules import folders, which workerd doesn't resolve. */
const bundledForWorkerd = {
  optimizer: {
    ssr: { enabled: true, include: ["ecc", "schema", "x509"].map((part) => `@peculiar/asn1-${part}`) },
  },
};

/** Otherwise, workerd prints errors that a test provokes, and wrangler says where it reads secrets. */
const quiet = { verbose: false };
process.env["WRANGLER_LOG"] ??= "warn";

/** Bindings of the tests inside workerd. */
const bindings = async () => ({
  LEASEHOLD_SIGNING_SECRET: TEST_SECRET,
  LEASEHOLD_REQUEST_LOG: "all",
  LEASEHOLD_SHARDS: "4",
  // Decisions are sent at once, so that the messages and rows of each call are always the same.
  LEASEHOLD_DECISION_WAIT_MS: "0",
  TEST_MIGRATIONS: await readD1Migrations(at("migrations")),
  TEST_SLICE: testSlice,
});

/** A busy machine makes no message late. Tests of deadlines set their own, or end them. */
const patientObjects = {
  LEASEHOLD_BEGIN_DEADLINE_MS: "60000",
  LEASEHOLD_COMMIT_DEADLINE_MS: "60000",
  LEASEHOLD_EXCHANGE_TIMEOUT_MS: "20000",
  LEASEHOLD_INQUIRY_TIMEOUT_MS: "20000",
};

/** The scenarios of the fault matrix that run at the same time. */
const FAULT_SCENARIOS = 6;

export default defineConfig({
  test: {
    reporters: ["./test/support/reporter.ts"],
    // Only the output of failing tests is useful.
    silent: "passed-only",
    // The Worker's log has thousands of lines, which other tests check.
    onConsoleLog: (line) => !line.startsWith('{"event":'),
    // More workers than two cores, because many tests wait for a process, a disk or a browser.
    maxWorkers: 5,
    fsModuleCache: true,
    projects: [
      {
        test: {
          ...patience,
          ...shared,
          name: "unit",
          include: [
            "test/{cli,common,demo,users}/**/*.test.ts",
            "test/coordinator/*.test.ts",
            "test/coordinator/{capabilities,kernel,tracing}/**/*.test.ts",
            "test/hosts/node/**/*.test.ts",
            "test/coordinator/auth/tokens/**/*.test.ts",
          ],
          exclude: [
            ...system,
            "test/coordinator/capabilities/*/workerd/**",
            "test/users/conformance/workerd/**",
            ...left,
          ],
        },
      },
      {
        plugins: [
          cloudflareTest(async () => ({
            ...quiet,
            main: at("src/coordinator/index.ts"),
            wrangler: { configPath: at("wrangler.toml") },
            miniflare: {
              bindings: { ...(await bindings()), ...patientObjects },
              // No test needs the network. Otherwise, workerd prints an error for each unknown name.
              outboundService: () => new Response(null, { status: 502 }),
            },
          })),
        ],
        test: {
          ...patience,
          ...shared,
          name: "workerd",
          deps: bundledForWorkerd,
          include: [
            "test/coordinator/{api,auth,console,cron,d1,isolate,objects,wire}/**/*.test.ts",
            "test/coordinator/capabilities/*/workerd/**/*.test.ts",
            "test/users/conformance/workerd/**/*.test.ts",
          ],
          exclude: [...system, "test/coordinator/auth/tokens/**/*.test.ts", ...left],
        },
      },
      {
        test: {
          ...patience,
          name: "sim",
          include: ["test/rigs/{sim,route-load}/*.test.ts"],
          exclude: left,
        },
      },
      {
        // Not `shared`: the files replace the module of the formats.
        test: { ...patience, name: "upgrade", include: ["test/upgrade/*.test.ts"] },
      },
      {
        test: {
          ...patience,
          ...shared,
          name: "system",
          globalSetup: ["test/support/setup/report-missing.ts", "test/support/setup/prisma-client.ts"],
          include: system,
          exclude: left,
        },
      },
      {
        plugins: [
          cloudflareTest(async () => ({
            ...quiet,
            main: at("test/rigs/faults/worker.ts"),
            wrangler: { configPath: at("wrangler.toml") },
            miniflare: {
              // One for each scenario that runs at a time.
              d1Databases: Object.fromEntries(
                Array.from({ length: FAULT_SCENARIOS }, (_, n) => [`SCENARIO_DB_${n}`, `scenario-${n}`]),
              ),
              bindings: {
                ...(await bindings()),
                LEASEHOLD_SHARDS: "2",
                FAULT_SCENARIOS: String(FAULT_SCENARIOS),
              },
            },
          })),
        ],
        test: {
          ...patience,
          name: "faults",
          include: ["test/rigs/faults/**/*.test.ts"],
          exclude: left,
          maxConcurrency: FAULT_SCENARIOS,
        },
      },
    ],
  },
});
