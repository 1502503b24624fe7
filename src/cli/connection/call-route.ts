import { errorOf } from "../../users/client/errors.ts";
import { readProblem } from "../../users/client/problem.ts";
import type { Context } from "../framework/context.ts";
import type { RawRequest } from "./send.ts";
import { isLeaseholdError } from "../../users/client/index.ts";
import { CommandError, messageOf, exitCodes } from "../framework/command-error.ts";

/** Calls a route that the client leaves out, without retries. Throws its refusal as an error. */
export async function callRoute<T>(context: Context, request: RawRequest): Promise<T> {
  const { status, text, header } = await context.send(request);
  if (status < 200 || status > 202) {
    const problem = readProblem(status, { get: header }, text);
    throw errorOf(request.method === "GET" ? { ...problem, outcomeKnown: true } : problem);
  }
  return JSON.parse(text) as T;
}

const UNSURE: ReadonlySet<string> = new Set(["UNAVAILABLE", "DEADLINE_EXCEEDED"]);

/**
 * Calls a route that changes something, as `callRoute` does. The error says if the change may be done
 * although the call failed: there was no answer, or the coordinator could not say, because a part was silent.
 *
 * @param next the command that shows what was done
 */
export async function changeRoute<T>(
  context: Context,
  request: RawRequest,
  next: string,
  look = "look",
): Promise<T> {
  try {
    return await callRoute<T>(context, request);
  } catch (error) {
    if (!mayBeDone(error)) throw error;
    throw new CommandError(
      `${messageOf(error).replace(/\.$/, "")}. It may have been done: ${look} before you repeat it`,
      exitCodes.unavailable,
      [next],
    );
  }
}

const mayBeDone = (error: unknown): boolean =>
  isLeaseholdError(error)
    ? !error.outcomeKnown || UNSURE.has(error.code)
    : error instanceof CommandError && error.exitCode === exitCodes.unavailable;
