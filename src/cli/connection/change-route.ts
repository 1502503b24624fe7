import { isLeaseholdError } from "../../users/client/index.ts";
import { CommandError, messageOf } from "../framework/command-error.ts";
import type { Context } from "../framework/context.ts";
import { exitCodes } from "../framework/exit-codes.ts";
import { callRoute } from "./call-route.ts";
import type { RawRequest } from "./send.ts";

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
