/** `npm start`: one coordinator on this machine, until it is told to end. */
import { resolve } from "node:path";
import { setTimeout } from "node:timers/promises";
import { limitNames, limitVariable } from "../src/core/limits.ts";
import { startCoordinator } from "./coordinator.ts";
import { devKeys } from "./dev-keys.ts";

/** How long a coordinator that lost its runtime may take to end. */
const STOP_MS = 5_000;

const stateFolder = resolve(process.env["LEASEHOLD_STATE"] || ".leasehold");

function portOf(given: string | undefined): number {
  const text = given || "8787";
  const port = Number(text);
  if (!/^\d+$/.test(text) || port < 1 || port > 65_535)
    throw new Error("PORT must be a whole number from 1 to 65535");
  return port;
}

const settings = new Set([
  ...limitNames.map(limitVariable),
  "LEASEHOLD_SHARDS",
  "LEASEHOLD_SHARD_LOCATION_HINT",
  "LEASEHOLD_REQUEST_LOG",
]);
/** Known, but not for the Worker. */
const others = new Set([
  "LEASEHOLD_STATE",
  "LEASEHOLD_URL",
  "LEASEHOLD_WORKERD",
  "LEASEHOLD_SIGNING_SECRET",
  "LEASEHOLD_PREVIOUS_SIGNING_SECRET",
]);

/** Every limit and setting can be given as in wrangler.toml; the signing secret is the state folder's own. */
function variablesOf(env: NodeJS.ProcessEnv): Record<string, string> {
  const given = Object.entries(env).flatMap(([name, value]) =>
    name.startsWith("LEASEHOLD_") && value ? [[name, value] as const] : [],
  );
  for (const [name] of given)
    if (!settings.has(name) && !others.has(name))
      process.stderr.write(`leasehold: ${name} is not a setting; it is ignored\n`);
  return Object.fromEntries(given.filter(([name]) => settings.has(name)));
}

/** Under `npm start` the one who started us is npm, and whoever kills that means us. */
function stopWithNpm(end: () => void): void {
  const { npm_lifecycle_event: script, npm_package_json: manifest } = process.env;
  // Both are inherited by whatever another project's `npm start` runs.
  if (script !== "start" || manifest !== resolve(import.meta.dirname, "../package.json")) return;
  const npm = process.ppid;
  const watch = setInterval(() => {
    if (process.ppid === npm) return;
    clearInterval(watch);
    end();
  }, 200);
  watch.unref();
}

async function main(): Promise<void> {
  const ended = new Promise<undefined>((then) => {
    const end = (): void => then(undefined);
    process.once("SIGINT", end);
    process.once("SIGTERM", end);
    stopWithNpm(end);
  });
  const coordinator = await startCoordinator({
    port: portOf(process.env["PORT"]),
    stateFolder,
    variables: variablesOf(process.env),
    log: (line) => process.stderr.write(`${line}\n`),
  });
  const { url, keys, isFirstStart } = coordinator;
  const lines = [
    `Leasehold is ready at ${url}`,
    "",
    `  state      ${stateFolder}`,
    `  keys       ${devKeys.fileOf(stateFolder)}${isFirstStart ? " (made now)" : ""}`,
    // Shown once: what is printed tends to be kept in logs.
    ...(isFirstStart ? [`  operator   ${keys.operator}`, `  router     ${keys.router}`] : []),
    ...(isFirstStart ? Object.entries(keys.cells).map(([cell, key]) => `  cell ${cell}     ${key}`) : []),
    "",
    `  API reference  ${url}/docs`,
    `  Try it         curl -H "Authorization: Bearer $KEY" ${url}/v1/limits`,
    "  Next           docs/start.md",
    "",
    "Ctrl-C ends it; the state stays.",
  ];
  process.stdout.write(`${lines.join("\n")}\n`);
  const failure = await Promise.race([ended, coordinator.failed]);
  if (failure === undefined) return coordinator.stop();
  // Miniflare may be waiting for a runtime that will never be ready.
  await Promise.race([coordinator.stop(), setTimeout(STOP_MS)]);
  throw failure;
}

main().then(
  () => process.exit(0),
  (error: unknown) => {
    process.stderr.write(
      `leasehold: ${error instanceof Error ? error.message.split("\n")[0] : String(error)}\n`,
    );
    process.exit(1);
  },
);
