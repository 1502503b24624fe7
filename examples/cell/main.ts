/** `npm run example`: starts two cells and a router in front of them, for use in a browser. */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { onStopSignal } from "../../src/hosts/workerd/on-stop-signal.ts";
import { startExample, type Example } from "./launcher/example.ts";
import { readOptions, usage, type Options } from "./launcher/options.ts";
import { readTypes } from "./launcher/types.ts";
import { basePath } from "./web/layout.ts";

/** How long the other parts may take to stop after one of them failed. */
const STOP_MS = 5_000;

const databaseUrls = {
  "1": process.env["EXAMPLE_DATABASE_URL_1"],
  "2": process.env["EXAMPLE_DATABASE_URL_2"],
};

function describe({ url, coordinatorUrl, cells }: Example, { folder }: Options): string {
  const cellLines = cells.map(({ id, address }) => {
    const kind = databaseUrls[id as keyof typeof databaseUrls] === undefined ? "PGlite" : "PostgreSQL";
    return `  cell ${id}       ${address}${basePath(id)}   ${kind}`;
  });
  return [
    `The example is ready: open ${url}`,
    "",
    `  router       ${url}`,
    ...cellLines,
    `  coordinator  ${coordinatorUrl}`,
    "",
    folder === undefined
      ? "Ctrl-C stops everything and deletes the data."
      : `Ctrl-C stops everything. The state is kept in ${folder}`,
    "",
  ].join("\n");
}

async function run(options: Options, folder: string): Promise<number> {
  // A wrong file is refused before anything is started.
  const types = await readTypes(options.types);
  const ended = new Promise<undefined>((then) => {
    onStopSignal(() => then(undefined));
  });
  process.stdout.write("Starting a coordinator, two cells and a router …\n");
  const { port, timing } = options;
  const example = await startExample({ port, folder, timing, types, databaseUrls });
  // The cells must not outlive this process, even if it fails.
  process.once("exit", () => {
    for (const cell of example.cells) cell.kill();
  });
  process.stdout.write(`${describe(example, options)}\n`);
  const failure = await Promise.race([ended, example.failed]);
  if (failure === undefined) {
    await example.stop();
    return 0;
  }
  process.stderr.write(`example: ${failure.message}\n`);
  const patience = new Promise((over) => {
    setTimeout(over, STOP_MS);
  });
  await Promise.race([example.stop(), patience]);
  return 1;
}

async function main(): Promise<number> {
  let options: Options;
  try {
    options = readOptions(process.argv.slice(2));
  } catch (error) {
    process.stderr.write(`example: ${error instanceof Error ? error.message : String(error)}\n\n${usage}`);
    return 2;
  }
  if (options.help) {
    process.stdout.write(usage);
    return 0;
  }
  const folder =
    options.folder === undefined
      ? mkdtempSync(join(tmpdir(), "leasehold-example-"))
      : resolve(options.folder);
  if (options.folder === undefined)
    process.once("exit", () => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
  try {
    mkdirSync(folder, { recursive: true });
    return await run(options, folder);
  } catch (error) {
    process.stderr.write(`example: ${error instanceof Error ? error.message : String(error)}\n`);
    return 1;
  }
}

process.exit(await main());
