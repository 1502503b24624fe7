import { CommanderError } from "commander";
import { isLeaseholdError, type LeaseholdError } from "../../users/client/index.ts";
import { escapeControls } from "../../common/text/escape.ts";
import { CommandError, messageOf, exitCodes, type ExitCode } from "./command-error.ts";
import { ClosedOutputError } from "./io.ts";

export interface Failure {
  exitCode: ExitCode;
  /** Undefined: there is nothing to say, or it was said already. */
  message: string | undefined;
  /** The document of `--json`. Undefined: the command has not failed. */
  problem: object | undefined;
  nextSteps: readonly string[];
}

const exitCodeOf: Readonly<Record<string, ExitCode>> = {
  INVALID_ARGUMENT: exitCodes.usage,
  UNAUTHENTICATED: exitCodes.notAllowed,
  PERMISSION_DENIED: exitCodes.notAllowed,
  NOT_FOUND: exitCodes.notFound,
  ALREADY_EXISTS: exitCodes.conflict,
  FAILED_PRECONDITION: exitCodes.conflict,
  ABORTED: exitCodes.conflict,
  RESOURCE_EXHAUSTED: exitCodes.unavailable,
  UNAVAILABLE: exitCodes.unavailable,
  DEADLINE_EXCEEDED: exitCodes.unavailable,
};

/** Says how a command ends that has thrown. */
export function failureOf(error: unknown, isInterrupted: boolean): Failure {
  if (error instanceof ClosedOutputError) return nothing;
  if (error instanceof CommanderError) return error.exitCode === 0 ? nothing : describeUsage(error);
  const failure = describe(error);
  if (!isInterrupted) return failure;
  // That of an aborted wait says nothing. That of a call says whether it may have been carried out.
  const isSaid = error instanceof CommandError || isLeaseholdError(error);
  return { ...failure, ...(isSaid ? {} : { message: "interrupted" }), exitCode: exitCodes.interrupted };
}

function describe(error: unknown): Failure {
  if (error instanceof CommandError) {
    const { message, exitCode, nextSteps } = error;
    return { exitCode, message, problem: { message }, nextSteps };
  }
  if (isLeaseholdError(error)) return describeAnswer(error);
  const message = messageOf(error);
  return { exitCode: exitCodes.failed, message, problem: { message }, nextSteps: [] };
}

function describeAnswer(error: LeaseholdError): Failure {
  const { code, reason, field, retryable, requestId, outcomeKnown } = error;
  const about = requestId === undefined ? code : `${code}, request ${requestId}`;
  const unknown = outcomeKnown ? "" : " The request may have been carried out: look before you repeat it.";
  return {
    exitCode: exitCodeOf[code] ?? exitCodes.failed,
    message: `${escapeControls(error.message)} (${about})${unknown}`,
    problem: {
      code,
      message: error.message,
      ...(reason === undefined ? {} : { reason }),
      ...(field === undefined ? {} : { field }),
      ...(requestId === undefined ? {} : { request_id: requestId }),
      retryable,
      outcome_known: outcomeKnown,
    },
    nextSteps: nextStepsOf(code),
  };
}

function nextStepsOf(code: string): string[] {
  switch (code) {
    case "UNAUTHENTICATED":
    case "PERMISSION_DENIED":
      return ["leasehold login --url URL", "leasehold doctor"];
    case "UNAVAILABLE":
    case "DEADLINE_EXCEEDED":
      return ["leasehold doctor"];
    default:
      return [];
  }
}

/** Commander has printed its message, or the help if a command is missing. */
const describeUsage = ({ code, message }: CommanderError): Failure => ({
  ...nothing,
  exitCode: exitCodes.usage,
  problem: { message: code === "commander.help" ? "a command is missing" : message.replace(/^error: /, "") },
});

/** The output is closed, or has the help that was asked for. */
const nothing: Failure = {
  exitCode: exitCodes.ok,
  message: undefined,
  problem: undefined,
  nextSteps: [],
};
