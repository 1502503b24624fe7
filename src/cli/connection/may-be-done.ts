import { isLeaseholdError } from "../../client/index.ts";
import { CommandError } from "../framework/command-error.ts";
import { exitCodes } from "../framework/exit-codes.ts";

const UNSURE: ReadonlySet<string> = new Set(["UNAVAILABLE", "DEADLINE_EXCEEDED"]);

/**
 * Whether a change that `callRoute` has sent may be done although it failed: there was no answer, or the
 * coordinator could not say, because one of its parts did not answer.
 */
export const mayBeDone = (error: unknown): boolean =>
  isLeaseholdError(error)
    ? !error.outcomeKnown || UNSURE.has(error.code)
    : error instanceof CommandError && error.exitCode === exitCodes.unavailable;
