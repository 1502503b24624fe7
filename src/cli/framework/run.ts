import type { Command } from "commander";
import type { Result } from "../output/result.ts";
import { printResult } from "../output/print.ts";
import { usageError, exitCodes, type ExitCode } from "./command-error.ts";
import { Context, type GlobalOptions } from "./context.ts";
import type { Io } from "./io.ts";
import { refuseMissing } from "./missing.ts";

/**
 * Turns a command's function into an action for commander. The function gets the context, the arguments and
 * the options, and returns a result, or prints by itself.
 */
export type Run = (
  work: (context: Context, ...given: never[]) => Promise<Result | undefined>,
) => (...given: unknown[]) => Promise<void>;

/** @param end is called with the exit code of the command */
export const runWith =
  (io: Io, end: (exitCode: ExitCode) => void): Run =>
  (work) =>
  async (...given) => {
    const command = given.at(-1) as Command;
    refuseMissing(command, io.prompt !== undefined);
    const options = command.optsWithGlobals<GlobalOptions>();
    if (options.json === true && options.jsonl === true) throw usageError("give --json or --jsonl, not both");
    const context = new Context(io, options);
    const result = await (work as (context: Context, ...given: unknown[]) => Promise<Result | undefined>)(
      context,
      ...given.slice(0, -1),
    );
    if (result !== undefined) await printResult(io, result, context.format);
    end(result?.exitCode ?? exitCodes.ok);
  };
