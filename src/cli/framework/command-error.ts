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

/** The exit codes of every command. docs/reference/command-line.md describes them. */
export const exitCodes = {
  ok: 0,
  /** The command failed, or what it checked is not in order. */
  failed: 1,
  usage: 2,
  conflict: 3,
  notFound: 4,
  notAllowed: 5,
  unavailable: 6,
  /** The command compared two sides, and they differ. */
  drift: 10,
  /** Ctrl-C. */
  interrupted: 130,
} as const;

export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes];
