import { parseArgs } from "node:util";
import { normalTiming, quickTiming, type Timing } from "./timing.ts";

export interface Options {
  /** The router's port. The other parts use the next free ports. */
  port: number;
  /** If undefined, a temporary folder that is removed at the end. */
  folder: string | undefined;
  /** The path of the types file. If undefined, the example's own. */
  types: string | undefined;
  timing: Timing;
  help: boolean;
}

const DEFAULT_PORT = 4_000;

export const usage = `Usage: npm run example -- [options]

Starts a coordinator, two cells with a database each, and a router in front of them.
Open the router's address in a browser.

  --port N       the router's port (default ${DEFAULT_PORT}); the other parts use the next free ports
  --folder PATH  keep the state in this folder, and continue from it (default: a temporary folder)
  --types PATH   declare the types of names in this file, which must have at least those of
                 examples/cell/leasehold.types.json (default: that file)
  --quick        shorten all waiting times, for tests
  --help         show this text

EXAMPLE_DATABASE_URL_1 and EXAMPLE_DATABASE_URL_2 are the URLs of empty PostgreSQL databases for the cells.
Without one, a cell uses PGlite, which is PostgreSQL in the cell's own process.
`;

/** Throws an `Error` with a one-sentence message if an option is unknown or has an invalid value. */
export function readOptions(args: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...args],
    options: {
      port: { type: "string" },
      folder: { type: "string" },
      types: { type: "string" },
      quick: { type: "boolean" },
      help: { type: "boolean" },
    },
    strict: true,
    allowPositionals: false,
  });
  const port = Number(values.port ?? DEFAULT_PORT);
  if (!Number.isInteger(port) || port < 1 || port > 65_000)
    throw new Error("--port must be a whole number from 1 to 65000");
  if (values.folder === "") throw new Error("--folder must be the path of a folder");
  if (values.types === "") throw new Error("--types must be the path of a file");
  return {
    port,
    folder: values.folder,
    types: values.types,
    timing: values.quick === true ? quickTiming : normalTiming,
    help: values.help ?? false,
  };
}
