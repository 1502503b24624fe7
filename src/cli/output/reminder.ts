import type { Io } from "../framework/io.ts";

/** Polls (about one a second) between two identical lines. */
const EVERY = 10;

/**
 * Writes what a command waits for: when that has changed, and again from time to time, so that a person sees
 * that it still waits. Returns how many times in a row the line was the same.
 */
export function reminder({ err }: Pick<Io, "err">): (line: string) => Promise<number> {
  let last: string | undefined;
  let same = 0;
  return async (line) => {
    same = line === last ? same + 1 : 0;
    last = line;
    if (same % EVERY === 0) await err.write(`${line}\n`);
    return same;
  };
}
