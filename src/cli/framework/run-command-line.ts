import { printNextSteps } from "../output/print.ts";
import { toJson } from "../output/escape.ts";
import { buildProgram } from "./program.ts";
import { exitCodes, type ExitCode } from "./exit-codes.ts";
import { failureOf } from "./failure.ts";
import { ClosedOutputError, type Io } from "./io.ts";
import { runWith } from "./run.ts";

/** Runs one command, prints what it says, and returns the exit code. It never throws. */
export async function runCommandLine(args: readonly string[], io: Io): Promise<ExitCode> {
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
    return await report(io, error, args).catch(closedQuietly);
  } finally {
    await Promise.allSettled(pending);
  }
}

async function report(io: Io, error: unknown, args: readonly string[]): Promise<ExitCode> {
  const { message, exitCode, problem, nextSteps } = failureOf(error, io.signal.aborted);
  if (message === undefined) return exitCode;
  await io.err.write(`leasehold: ${message}\n`);
  // `--json` promises one document, also for a failure.
  if (args.includes("--json")) {
    await io.out.write(`${toJson({ error: problem, next_steps: nextSteps }, 2)}\n`);
    return exitCode;
  }
  await printNextSteps(io, nextSteps);
  return exitCode;
}

function closedQuietly(error: unknown): ExitCode {
  if (error instanceof ClosedOutputError) return exitCodes.ok;
  throw error;
}
