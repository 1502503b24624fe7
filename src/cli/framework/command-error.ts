import { exitCodes, type ExitCode } from "./exit-codes.ts";

/** A failure whose message is complete, with the exit code that the command ends with. */
export class CommandError extends Error {
  override readonly name = "CommandError";
  readonly exitCode: ExitCode;
  /** Commands that help. They are shown after the message. */
  readonly nextSteps: readonly string[];

  constructor(message: string, exitCode: ExitCode, nextSteps: readonly string[] = []) {
    super(message);
    this.exitCode = exitCode;
    this.nextSteps = nextSteps;
  }
}

/** A wrong flag, argument, file or setting. Nothing was sent. */
export const usageError = (message: string, nextSteps: readonly string[] = []): CommandError =>
  new CommandError(message, exitCodes.usage, nextSteps);

export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
