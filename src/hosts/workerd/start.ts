/** `npm start`: runs one coordinator on this machine until a signal stops it. */
import { resolve } from "node:path";
import { setTimeout } from "node:timers/promises";
import { parseArgs } from "node:util";
import { createClient } from "../../users/client/index.ts";
import { startCoordinator } from "./coordinator.ts";
import { devKeys } from "./dev-keys.ts";
import { onStopSignal } from "./on-stop-signal.ts";
import { openFilesWarning } from "./open-files.ts";
import { log, runServer } from "./server-process.ts";
import { endWithNpm, portOf, variablesOf } from "./settings.ts";
import { declareTypes, readTypesFile } from "../../cli/files/types-file.ts";

const HELP = `Usage: npm start -- [options]

Runs one coordinator on this machine until a signal stops it. docs/operating/one-machine.md has more.

  --types <path>   a file with the types of names that the coordinator has from now on;
                   docs/guides/declare-types.md describes it
  --help           show this text

Variables: PORT, LEASEHOLD_STATE, and those of docs/reference/configuration.md.
`;

/** How long the coordinator may take to stop after its runtime was lost. */
const STOP_MS = 5_000;

const stateFolder = resolve(process.env["LEASEHOLD_STATE"] || ".leasehold");

async function main(): Promise<void> {
  const { values } = parseArgs({ options: { types: { type: "string" }, help: { type: "boolean" } } });
  if (values.help === true) return void process.stdout.write(HELP);
  // A wrong file is refused before anything is started.
  const types = values.types === undefined ? undefined : await readTypesFile(values.types);
  const warning = openFilesWarning();
  if (warning !== undefined) process.stderr.write(`leasehold: ${warning}\n`);
  const ended = new Promise<undefined>((then) => {
    const end = (): void => then(undefined);
    onStopSignal(end);
    endWithNpm("start", resolve(import.meta.dirname, "../../.."), end);
  });
  const coordinator = await startCoordinator({
    port: portOf(process.env["PORT"]),
    stateFolder,
    variables: variablesOf(process.env),
    log,
  });
  const { url, keys, isFirstStart } = coordinator;
  if (types !== undefined) {
    try {
      const client = createClient({ url, key: keys.operator });
      const { lines: changes, isRefused } = await declareTypes(client, types, false);
      if (isRefused) throw new Error(`the types are refused: ${changes.join(" ")}`);
    } catch (error) {
      await coordinator.stop();
      throw error;
    }
  }
  const lines = [
    `Leasehold is ready at ${url}`,
    "",
    `  state      ${stateFolder}`,
    // The keys themselves are not printed, because output is often kept in logs.
    `  keys       ${devKeys.describe(stateFolder, keys)}${isFirstStart ? " (new)" : ""}`,
    "",
    `  API reference  ${url}/docs`,
    `  Try it         curl -H "Authorization: Bearer $KEY" ${url}/v1/limits`,
    "  Next           docs/start.md",
    "",
    "Ctrl-C stops it. The state is kept.",
  ];
  process.stdout.write(`${lines.join("\n")}\n`);
  const failure = await Promise.race([ended, coordinator.failed]);
  if (failure === undefined) return coordinator.stop();
  // `stop` may wait for a runtime that will never be ready, so it gets a time limit.
  await Promise.race([coordinator.stop(), setTimeout(STOP_MS)]);
  throw failure;
}

runServer(main);
