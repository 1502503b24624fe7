/** `npm run router`: runs the router on this machine until a signal stops it. */
import { mkdtempSync, rmSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { readSettings, settingNames } from "../../../router/settings.ts";
import { compileRuleset, RulesetError } from "../../users/router/index.ts";
import { startCoordinator } from "../workerd/coordinator.ts";
import { startDemoCells } from "../workerd/demo-cells.ts";
import { onStopSignal } from "../workerd/on-stop-signal.ts";
import { startRouterWorker } from "./router-worker.ts";
import { log, runServer } from "../workerd/server-process.ts";
import { endWithNpm } from "../workerd/settings.ts";

const DEFAULT_PORT = 8_788;
const DEFAULT_RULES = join(import.meta.dirname, "../../../router/rules.json");

const HELP = `Usage: npm run router -- [options]

Runs the Worker of router/ on this machine until a signal stops it. Without --coordinator, it also starts a
coordinator and two small cells, which own the names "ada" and "grace".

  --port N            the router's port (default ${DEFAULT_PORT})
  --coordinator URL   use this coordinator and its cells; set LEASEHOLD_KEY to a key with the role router
  --key KEY           the same key, but other users of this machine can read it
  --rules PATH        the routing rules (default router/rules.json); docs/reference/routing-rules.md
                      describes them
  --help              show this text

Variables: those of docs/guides/deploy-a-router.md. On this machine, ROUTER_ALLOW_LOCAL_HTTP and
ROUTER_SHOW_ROUTE are on unless they are set.
`;

interface Part {
  stop(): Promise<void>;
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      port: { type: "string" },
      coordinator: { type: "string" },
      key: { type: "string" },
      rules: { type: "string" },
      help: { type: "boolean" },
    },
  });
  if (values.help === true) return void process.stdout.write(HELP);
  const port = portOf(values.port);
  const rules = await readRules(values.rules === undefined ? DEFAULT_RULES : resolve(values.rules));
  const ended = new Promise<undefined>((then) => {
    const end = (): void => then(undefined);
    onStopSignal(end);
    endWithNpm("router", resolve(import.meta.dirname, "../../.."), end);
  });
  const parts: Part[] = [];
  const stop = async (): Promise<void> => {
    for (const part of parts.toReversed()) await part.stop();
  };
  try {
    const common = { ...variablesOf(process.env), ROUTER_RULES: JSON.stringify(rules) };
    const { variables, lines, failed } =
      values.coordinator === undefined
        ? await startAll(parts, values.key)
        : existing(values.coordinator, values.key ?? process.env["LEASEHOLD_KEY"]);
    const all = { ...common, ...variables };
    // The Worker would answer 500 to every request.
    readSettings(all);
    const router = await startRouterWorker({ port, variables: all, log });
    parts.push(router);
    process.stdout.write(
      [`The router is ready at ${router.url}`, "", ...lines(router.url), "", ""].join("\n"),
    );
    const failure = await Promise.race([ended, ...(failed === undefined ? [] : [failed])]);
    if (failure !== undefined) throw failure;
  } finally {
    await stop();
  }
}

interface Started {
  variables: { LEASEHOLD_URL: string; LEASEHOLD_KEY: string };
  lines: (url: string) => string[];
  failed?: Promise<Error>;
}

const existing = (url: string, key: string | undefined): Started => {
  if (key === undefined || key === "")
    throw new Error("LEASEHOLD_KEY is missing; set it to a key with the role router, or use --key");
  return {
    variables: { LEASEHOLD_URL: url, LEASEHOLD_KEY: key },
    lines: () => [`  coordinator  ${url}`, "", "Ctrl-C stops the router."],
  };
};

async function startAll(parts: Part[], key: string | undefined): Promise<Started> {
  if (key !== undefined)
    throw new Error("--key needs --coordinator; without it, the router gets its own key");
  const folder = mkdtempSync(join(tmpdir(), "leasehold-router-"));
  process.once("exit", () => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
  const coordinator = await startCoordinator({ port: 0, stateFolder: join(folder, "coordinator") });
  parts.push(coordinator);
  const cells = await startDemoCells(coordinator);
  parts.push(...cells);
  return {
    variables: { LEASEHOLD_URL: coordinator.url, LEASEHOLD_KEY: coordinator.keys.router },
    lines: (url) => [
      ...cells.map(({ id, address, name }) => `  cell ${id}       ${address}   owns ${name}`),
      `  coordinator  ${coordinator.url}`,
      "",
      `  Try it       curl -i ${url}/${cells[0]?.name ?? ""}`,
      "",
      "Ctrl-C stops everything and deletes the data.",
    ],
    failed: coordinator.failed,
  };
}

function portOf(given: string | undefined): number {
  const port = given === undefined ? DEFAULT_PORT : Number(given);
  if (!Number.isInteger(port) || port < 1 || port > 65_535)
    throw new Error("--port must be a whole number from 1 to 65535");
  return port;
}

/** Reads the rules. Throws an `Error` that names the first mistake. */
async function readRules(path: string): Promise<unknown> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    throw new Error(`${path} cannot be read (${(error as NodeJS.ErrnoException).code})`, { cause: error });
  }
  let rules: unknown;
  try {
    rules = JSON.parse(text);
  } catch (error) {
    throw new Error(`${path} is not a JSON document`, { cause: error });
  }
  try {
    compileRuleset(rules);
  } catch (error) {
    if (!(error instanceof RulesetError)) throw error;
    const [first] = error.findings;
    const more = error.findings.length > 1 ? `, and ${error.findings.length - 1} more` : "";
    throw new Error(`${path}: \`${first?.field}\` ${first?.message}${more}`, { cause: error });
  }
  return rules;
}

/** The variables of the router in the environment, with the defaults for this machine. */
function variablesOf(env: NodeJS.ProcessEnv): Record<string, string> {
  const given = [...settingNames, "ROUTER_METRICS_KEY"].flatMap((name) => {
    const value = env[name];
    return value === undefined || value === "" ? [] : [[name, value] as const];
  });
  return { ROUTER_ALLOW_LOCAL_HTTP: "on", ROUTER_SHOW_ROUTE: "on", ...Object.fromEntries(given) };
}

runServer(main);
