import { escapeLines } from "../../common/text/escape.ts";
import { standardErrorLog, type LogOutput } from "./log-output.ts";

/** How long the last lines of the log wait for a reader. */
const DRAIN_MS = 3_000;

let output: LogOutput | undefined;

/**
 * Logs a line on standard error. The first line must come after all programs of the process have been started
 * (see `standardErrorLog`).
 */
export function log(line: string): void {
  output ??= standardErrorLog();
  output.write(line);
}

/** Runs a server until it has stopped, and ends the process. An error becomes a sentence and exit code 1. */
export function runServer(main: () => Promise<void>): void {
  // A reader that closes standard output or standard error must not end the server.
  for (const stream of [process.stdout, process.stderr]) stream.on("error", () => {});
  main().then(
    () => exit(0),
    (error: unknown) =>
      exit(
        1,
        escapeLines(`leasehold: ${error instanceof Error ? error.message.split("\n")[0] : String(error)}`),
      ),
  );
}

/** Ends the process once the log is read. A reader that reads nothing delays it by `DRAIN_MS`. */
async function exit(code: number, lastLine?: string): Promise<void> {
  if (lastLine !== undefined && output === undefined) process.stderr.write(`${lastLine}\n`);
  else if (lastLine !== undefined) log(lastLine);
  await output?.drain(DRAIN_MS);
  process.exit(code);
}
