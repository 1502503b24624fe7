import { parseArgs } from "node:util";
import { normalTiming, quickTiming, type Timing } from "./timing.ts";

export interface Options {
  /** Of the router; the other ports follow it. */
  port: number;
  /** Undefined: a temporary one, which goes at the end. */
  folder: string | undefined;
  timing: Timing;
  help: boolean;
}

const DEFAULT_PORT = 4_000;

export const usage = `Usage: npm run example -- [options]

Starts a coordinator, two cells with a database each, and a router in front of them.
Open the router's address in a browser.

  --port N       the router's port (default ${DEFAULT_PORT}); the others follow it. Ports that are taken are skipped
  --folder PATH  keep all state in this folder, and go on from there (default: a temporary folder)
  --quick        everything that takes seconds takes less: for tests
  --help         this text

EXAMPLE_DATABASE_URL_1 and EXAMPLE_DATABASE_URL_2 put a cell on a PostgreSQL of yours (an empty database);
without them a cell has PGlite, which is PostgreSQL in the cell's own process.
`;

/** Throws an `Error` with one plain sentence when an option is not known or makes no sense. */
export function readOptions(args: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...args],
    options: {
      port: { type: "string" },
      folder: { type: "string" },
      quick: { type: "boolean" },
      help: { type: "boolean" },
    },
    strict: true,
    allowPositionals: false,
  });
  const port = Number(values.port ?? DEFAULT_PORT);
  if (!Number.isInteger(port) || port < 1 || port > 65_000)
    throw new Error("--port must be a whole number from 1 to 65000");
  if (values.folder === "") throw new Error("--folder must name a folder");
  return {
    port,
    folder: values.folder,
    timing: values.quick === true ? quickTiming : normalTiming,
    help: values.help ?? false,
  };
}
