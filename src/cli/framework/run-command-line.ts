import { printNextSteps } from "../output/print.ts";
import { escapeLines, toJson } from "../../common/text/escape.ts";
import { buildProgram } from "./program.ts";
import { exitCodes, type ExitCode } from "./command-error.ts";
import { failureOf, type Failure } from "./failure.ts";
import { ClosedOutputError, type Io, type Output } from "./io.ts";
import { runWith } from "./run.ts";

/** Runs one command, prints what it says, and returns the exit code. It never throws. */
export async function runCommandLine(args: readonly string[], given: Io): Promise<ExitCode> {
  // Messages repeat arguments, paths and answers, which may have characters that control a terminal.
  const err: Output = { ...given.err, write: (text) => given.err.write(escapeLines(text)) };
  const io: Io = { ...given, err };
  let exitCode: ExitCode = exitCodes.ok;
  const pending: Promise<void>[] = [];
  const program = buildProgram(
    runWith(io, (code) => (exitCode = code)),
    {
      out: (text) => pending.push(io.out.write(text)),
      err: (text) => pending.push(io.err.write(text)),
    },
  );
  try {
    await program.parseAsync([...args], { from: "user" });
    await Promise.all(pending);
    return exitCode;
  } catch (error) {
    return await report(io, error, args);
  } finally {
    await Promise.allSettled(pending);
  }
}

/** The exit code is that of the failure, also if nobody reads about it. */
async function report(io: Io, error: unknown, args: readonly string[]): Promise<ExitCode> {
  const failure = failureOf(error, io.signal.aborted);
  await say(io, failure, args.includes("--json")).catch(ignoreClosed);
  return failure.exitCode;
}

async function say(io: Io, { message, problem, nextSteps }: Failure, isJson: boolean): Promise<void> {
  if (message !== undefined) await io.err.write(`leasehold: ${message}\n`);
  // `--json` promises one document, also for a failure.
  if (isJson && problem !== undefined)
    await io.out.write(`${toJson({ error: problem, next_steps: nextSteps }, 2)}\n`);
  else await printNextSteps(io, nextSteps);
}

function ignoreClosed(error: unknown): void {
  if (!(error instanceof ClosedOutputError)) throw error;
}
