import { isLeaseholdError } from "../../users/client/index.ts";
import { CommandError, messageOf } from "../framework/command-error.ts";
import { exitCodes } from "../framework/exit-codes.ts";
import type { Io } from "../framework/io.ts";
import { durationText } from "../../common/text/duration.ts";

const FIRST_BACKOFF_MS = 1_000;
const MAX_BACKOFF_MS = 30_000;
/** The longest outage that is waited for. */
const OUTAGE_MS = 900_000;

/** What passes by itself: an outage, a limit that is reached, or a lease in the way. */
const PASSING: ReadonlySet<string> = new Set([
  "UNAVAILABLE",
  "DEADLINE_EXCEEDED",
  "RESOURCE_EXHAUSTED",
  "ABORTED",
]);

const mayPass = (error: unknown): boolean =>
  isLeaseholdError(error)
    ? PASSING.has(error.code)
    : error instanceof CommandError && error.exitCode === exitCodes.unavailable;

/** Repeats work through outages of up to a quarter of an hour. The work must be safe to repeat. */
export async function untilAnswered<T>(
  { signal, err, wait }: Pick<Io, "signal" | "err" | "wait">,
  work: () => Promise<T>,
): Promise<T> {
  let waitedMs = 0;
  for (let backoffMs = FIRST_BACKOFF_MS; ; backoffMs = Math.min(MAX_BACKOFF_MS, backoffMs * 2)) {
    signal.throwIfAborted();
    try {
      return await work();
    } catch (error) {
      if (signal.aborted || !mayPass(error) || waitedMs >= OUTAGE_MS) throw error;
      const why = messageOf(error);
      await err.write(`Not now: ${why} Trying again in ${durationText(backoffMs)}.\n`);
      await wait(backoffMs);
      waitedMs += backoffMs;
    }
  }
}
