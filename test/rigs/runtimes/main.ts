/** `npm run test:runtimes`: runs the packed SDK on every runtime that the docs name. */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { buildSdk } from "../../../scripts/sdk/build.ts";
import { packSdk } from "../../../scripts/sdk/consumer.ts";
import { entries } from "../../../scripts/sdk/entries.ts";
import { startMariadb } from "../../support/databases/mariadb.ts";
import { startPostgres } from "../../support/databases/postgres.ts";
import { isInstalled } from "../../support/databases/programs.ts";
import type { DatabaseServer } from "../../support/databases/server.ts";
import { BadOption, parsed, runProgram } from "../../support/options.ts";
import { installRuntime, makeProject } from "./project.ts";
import { startRouted } from "./routed.ts";
import { runCommands } from "./run-commands.ts";
import { runUntil, type Run } from "./run.ts";
import { runners, type Runner } from "./runners.ts";
import {
  deno,
  LATEST_KYSELY,
  runtimes,
  titleOf,
  workerd,
  type CellRuntime,
  type Runtime,
} from "./runtimes.ts";
import { checkWorkerd } from "./workerd.ts";

const root = join(import.meta.dirname, "../../..");

const titles = [...runtimes, deno, workerd].map(titleOf);

const USAGE = `npm run test:runtimes -- [options]

  --only NAME   checks one runtime; may be given several times
  --help        prints this text

Packs the SDK, installs it with its peers in an empty folder, and runs it on each runtime: a program with
every driver, a router, and from Node 22.13 on the conformance suite with each test runner. On Node, it
also runs every command of the command line. On Deno and workerd, it runs only the router. Needs Linux,
PostgreSQL and MariaDB, and npm's registry, from which the runtimes come. The runtimes:

${titles.map((title) => `  ${title}`).join("\n")}
`;

const print = (line: string): void => void process.stdout.write(`${line}\n`);

const kinds = [
  { dialect: "postgres", database: "PostgreSQL", start: startPostgres },
  { dialect: "mysql", database: "MariaDB", start: startMariadb },
] as const;

interface Check {
  scratch: string;
  tarball: string;
  servers: Readonly<Record<string, string>>;
  run: Run;
}

/** Runs the conformance suite, and returns how many tests passed. */
async function runSuite(
  runner: Runner,
  program: string,
  project: string,
  env: Readonly<Record<string, string>>,
  run: Run,
): Promise<number> {
  const file = `${runner.name.replaceAll(/\W/g, "-")}.test.mjs`;
  writeFileSync(
    join(project, file),
    `${runner.lines}import { runConformance } from "./conformance.mjs";\nrunConformance(runner);\n`,
  );
  const counts = join(project, "counts");
  rmSync(counts, { force: true });
  await run(program, runner.args(file), { cwd: project, env: { ...env, COUNTS: counts } });
  const lines = readFileSync(counts, "utf8").trim().split("\n");
  const passed = lines.filter((line) => line === "passed").length;
  if (passed === 0 || passed * 2 !== lines.length)
    throw new Error(`${runner.name} declared ${lines.length - passed} tests, and ran ${passed}`);
  return passed;
}

async function projectFor(kysely: string, { scratch, tarball, run }: Check): Promise<string> {
  const project = join(scratch, `kysely-${kysely}`);
  if (!existsSync(project)) await makeProject(project, tarball, kysely, run);
  return project;
}

/** Runs `check` with the program of a runtime, and removes the runtime. */
async function withRuntime(
  runtime: Runtime,
  { scratch, run }: Check,
  check: (program: string) => Promise<string>,
): Promise<string> {
  const program = await installRuntime(scratch, runtime, run);
  const [version] = /\d+\.\d+\.\d+/.exec(await run(program, ["--version"], { cwd: scratch })) ?? [];
  if (version !== runtime.version) throw new Error(`${runtime.package} contains ${version}`);
  const checked = await check(program);
  // Each takes up to 200 MB.
  rmSync(program.slice(0, -runtime.program.length), { recursive: true });
  return checked;
}

/** Runs claims with every driver, and the conformance suite. Returns what was done, as one line. */
async function checkCell(
  runtime: CellRuntime,
  program: string,
  project: string,
  { servers, run }: Check,
): Promise<string> {
  const env = {
    SERVERS: JSON.stringify(servers),
    COORDINATOR_NODE: process.execPath,
  };
  const claims = await run(program, runtime.args("claims.mjs"), { cwd: project, env });
  const suites: string[] = [];
  for (const runner of runners.filter(({ runsOn }) => runsOn(runtime)))
    suites.push(
      `${await runSuite(runner, program, project, env, run)} conformance tests with ${runner.name}`,
    );
  return [`claims with ${claims.trim().split("\n").join(", ")}`, ...suites].join("; ");
}

/** Runs a router. Returns what was checked. */
async function checkRouter(
  runtime: Runtime,
  program: string,
  project: string,
  { scratch, run }: Check,
): Promise<string> {
  const { routed, stop } = await startRouted();
  try {
    const env = {
      ROUTED: JSON.stringify(routed),
      DENO_DIR: join(scratch, "deno"),
      DENO_NO_UPDATE_CHECK: "1",
    };
    const checked = await run(program, runtime.args("router.mjs"), { cwd: project, env });
    return `a router: ${checked.trim()}`;
  } finally {
    await stop();
  }
}

/** Runs every command of the packed command line, which is for Node only. Returns what was checked. */
async function checkCommands(
  { name, version }: CellRuntime,
  program: string,
  project: string,
  { scratch }: Check,
): Promise<string> {
  if (name !== "Node") return "";
  const cli = join(project, "node_modules/leasehold/js/cli.js");
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const hasSqlite = major > 22 || (major === 22 && minor >= 16);
  return `; ${await runCommands(program, cli, { scratch, hasSqlite })} commands`;
}

/** What is done on each runtime. Each check returns what it did, as one line. */
const checks: Readonly<Record<string, (check: Check) => Promise<string>>> = {
  ...Object.fromEntries(
    runtimes.map((runtime) => [
      titleOf(runtime),
      async (check: Check) => {
        const project = await projectFor(runtime.kysely, check);
        return withRuntime(runtime, check, async (program) => {
          const router = await checkRouter(runtime, program, project, check);
          const commands = await checkCommands(runtime, program, project, check);
          return `${await checkCell(runtime, program, project, check)}; ${router}${commands}`;
        });
      },
    ]),
  ),
  [titleOf(deno)]: async (check) => {
    const project = await projectFor(LATEST_KYSELY, check);
    return withRuntime(deno, check, (program) => checkRouter(deno, program, project, check));
  },
  [titleOf(workerd)]: async (check) => {
    const project = await projectFor(LATEST_KYSELY, check);
    const { routed, stop } = await startRouted();
    try {
      return `a router: ${await checkWorkerd(project, routed)}`;
    } finally {
      await stop();
    }
  },
};

async function packedSdk(scratch: string): Promise<string> {
  const folder = join(scratch, "package");
  await buildSdk(root, entries, folder);
  return packSdk(folder, scratch);
}

/** Starts the servers that are installed. */
async function startServers(stops: (() => Promise<void>)[]): Promise<Readonly<Record<string, string>>> {
  const servers: Record<string, string> = {};
  for (const { dialect, database, start } of kinds) {
    if (!isInstalled(database)) {
      print(`${database} is not installed: its drivers are skipped`);
      continue;
    }
    const server: DatabaseServer = await start();
    stops.push(() => server.stop());
    servers[dialect] = server.url();
  }
  if (Object.keys(servers).length === 0) throw new Error("install a database with npm run setup");
  return servers;
}

function chosenTitles(given: readonly string[] | undefined): readonly string[] {
  for (const title of given ?? [])
    if (!titles.includes(title)) throw new BadOption(`--only must name a runtime: ${titles.join(", ")}`);
  return given ?? titles;
}

/** Checks the runtimes one after the other. A failed one does not stop the others. */
async function checkAll(chosen: readonly string[], signal: AbortSignal): Promise<boolean> {
  const scratch = mkdtempSync(join(tmpdir(), "leasehold-runtimes-"));
  const stops: (() => Promise<void>)[] = [];
  const failed: string[] = [];
  try {
    const tarball = await packedSdk(scratch);
    const check = { scratch, tarball, servers: await startServers(stops), run: runUntil(signal) };
    for (const title of chosen) {
      try {
        print(`${title.padEnd(21)} passed: ${await checks[title]?.(check)}`);
      } catch (error) {
        signal.throwIfAborted();
        failed.push(title);
        print(`${title.padEnd(21)} FAILED: ${error instanceof Error ? error.message : String(error)}`);
      }
    }
  } finally {
    for (const stop of stops.toReversed()) await stop();
    rmSync(scratch, { recursive: true, force: true, maxRetries: 10 });
  }
  print(failed.length === 0 ? `${chosen.length} runtimes passed` : `failed: ${failed.join(", ")}`);
  return failed.length === 0;
}

async function main(): Promise<boolean> {
  const { values } = parsed(() =>
    parseArgs({ options: { only: { type: "string", multiple: true }, help: { type: "boolean" } } }),
  );
  if (values.help === true) return (print(USAGE), true);
  const interruption = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const)
    process.once(signal, () => interruption.abort(new Error(`interrupted by ${signal}`)));
  return checkAll(chosenTitles(values.only), interruption.signal);
}

runProgram(USAGE, main);
