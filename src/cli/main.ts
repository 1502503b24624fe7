/** The program `leasehold`. */
import { exitCodes } from "./framework/exit-codes.ts";
import { processIo } from "./framework/process-io.ts";
import { runCommandLine } from "./framework/run-command-line.ts";

const interrupt = new AbortController();
for (const signal of ["SIGINT", "SIGTERM"] as const)
  process.on(signal, () => {
    // The second time, the command does not end by itself.
    if (interrupt.signal.aborted) process.exit(exitCodes.interrupted);
    interrupt.abort(new Error("interrupted"));
  });
process.exitCode = await runCommandLine(process.argv.slice(2), processIo(interrupt.signal));
