/** `npm start`: one coordinator on this machine, until it is told to end. */
import { resolve } from "node:path";
import { startCoordinator } from "./coordinator.ts";
import { devKeys } from "./dev-keys.ts";

const stateFolder = resolve(process.env["LEASEHOLD_STATE"] ?? ".leasehold");

function portOf(given: string | undefined): number {
  const port = Number(given ?? "8787");
  if (!/^\d+$/.test(given ?? "8787") || port < 1 || port > 65_535) throw new Error("PORT must be a whole number from 1 to 65535");
  return port;
}

/** Every limit and setting can be given as in wrangler.toml; the signing secret is the state folder's own. */
function variablesOf(env: NodeJS.ProcessEnv): Record<string, string> {
  const given = Object.entries(env).filter(([name]) => name.startsWith("LEASEHOLD_") && name !== "LEASEHOLD_STATE" && !name.includes("SECRET"));
  return Object.fromEntries(given.map(([name, value]) => [name, value ?? ""]));
}

/** Under `npm start` the one who started us is npm, and whoever kills that means us. */
function endWithNpm(end: () => void): void {
  if (process.env["npm_lifecycle_event"] !== "start") return;
  const npm = process.ppid;
  const watch = setInterval(() => {
    if (process.ppid === npm) return;
    clearInterval(watch);
    end();
  }, 200);
  watch.unref();
}

async function main(): Promise<void> {
  const ended = new Promise<void>((end) => {
    process.once("SIGINT", end);
    process.once("SIGTERM", end);
    endWithNpm(end);
  });
  const coordinator = await startCoordinator({
    port: portOf(process.env["PORT"]),
    stateFolder,
    variables: variablesOf(process.env),
    log: (line) => process.stderr.write(`${line}\n`),
  });
  const { url, keys, firstStart } = coordinator;
  const lines = [
    `Leasehold is ready at ${url}`,
    "",
    `  state      ${stateFolder}`,
    `  keys       ${devKeys.fileOf(stateFolder)}${firstStart ? " (made now)" : ""}`,
    // Shown once: what is printed tends to be kept in logs.
    ...(firstStart ? [`  operator   ${keys.operator}`, `  router     ${keys.router}`] : []),
    ...(firstStart ? Object.entries(keys.cells).map(([cell, key]) => `  cell ${cell}     ${key}`) : []),
    "",
    `  API reference  ${url}/docs`,
    `  Try it         curl -H "Authorization: Bearer $KEY" ${url}/v1/limits`,
    "  Next           docs/start.md",
    "",
    "Ctrl-C ends it; the state stays.",
  ];
  process.stdout.write(`${lines.join("\n")}\n`);
  await ended;
  await coordinator.stop();
}

main().then(
  () => process.exit(0),
  (error: unknown) => {
    process.stderr.write(`leasehold: ${error instanceof Error ? error.message.split("\n")[0] : String(error)}\n`);
    process.exit(1);
  },
);
