/** The program `leasehold`. */
import { onStopSignal } from "../hosts/workerd/on-stop-signal.ts";
import { processIo } from "./framework/process-io.ts";
import { runCommandLine } from "./framework/run-command-line.ts";

const interrupt = new AbortController();
onStopSignal(() => interrupt.abort(new Error("interrupted")));
process.exitCode = await runCommandLine(process.argv.slice(2), processIo(interrupt.signal));
