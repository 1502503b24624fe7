/** Readers of flags and arguments. Commander shows what they throw, and the command ends with 2. */
import { InvalidArgumentError, Option, type Command } from "commander";
import { durationText, secondsOf } from "../../common/text/duration.ts";
import { usageError } from "./command-error.ts";

export const wholeNumber =
  (min: number, max: number) =>
  (text: string): number => {
    const number = Number(text);
    if (!/^\d+$/.test(text) || number < min || number > max)
      throw new InvalidArgumentError(`It must be a whole number from ${min} to ${max}.`);
    return number;
  };

/** A hundred years. Longer times would not fit into a date. */
export const LONGEST_S = 36_500 * 86_400;

/** Reads `90s`, `10m`, `2h` or `30d`, in seconds. */
export const duration =
  (minS: number, maxS: number = LONGEST_S) =>
  (text: string): number => {
    const seconds = secondsOf(text);
    if (seconds === undefined || seconds < minS || seconds > maxS)
      throw new InvalidArgumentError(
        `It must be a time from ${durationText(minS * 1_000)} to ${durationText(maxS * 1_000)}, ` +
          "such as 90s, 10m, 2h or 30d.",
      );
    return seconds;
  };

/** How often a command refreshes. */
export const intervalOption = (defaultS: number): Option =>
  new Option("--interval <time>", "how often to refresh, from 1s to 1d")
    .argParser(duration(1, 86_400))
    .default(defaultS, `${defaultS}s`);

const UUID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i;

export function uuid(text: string): string {
  if (!UUID.test(text)) throw new InvalidArgumentError("It must be a UUID.");
  return text.toLowerCase();
}

/** The id of a transfer: its destination and a UUID. */
export function transferId(text: string): string {
  const [, to = "", id = ""] = /^(\d+)-(.*)$/.exec(text) ?? [];
  if (!CELL_ID.test(to) || !UUID.test(id))
    throw new InvalidArgumentError("It must be the id of a transfer, such as 7-0198c5a0-5f6e-7000-8000-….");
  return text.toLowerCase();
}

const CELL_ID = /^[1-9]\d{0,18}$/;

/** Cell ids are int64 above 0. */
export function cellId(text: string): string {
  if (!CELL_ID.test(text) || BigInt(text) >= 2n ** 63n)
    throw new InvalidArgumentError("It must be the id of a cell, a whole number above 0.");
  return text;
}

/**
 * Refuses a key where its id belongs, without showing it. Commander would show what a reader refuses, so the
 * command itself has to call this.
 *
 * @throws a usage error that begins with `name`
 */
export function checkKeyId(id: string, name: string): void {
  if (!/^[\w-]{1,64}$/.test(id)) throw usageError(`${name} must be the id of a key, not the key itself`);
}

/** The default is what fits on a screen. */
const LIMIT = 50;
const MAX_LIMIT = 100_000;

export const limitOption = (): Option =>
  new Option("--limit <count>", "show at most this many").argParser(wholeNumber(1, MAX_LIMIT)).default(LIMIT);

export interface LimitOption {
  limit: number;
}

/** Pages a little larger than the limit show whether there is more. The coordinator reads 1,000 at most. */
export const pageSizeFor = (limit: number): number => Math.min(limit + 1, 100);

/** Adds examples to the help of a command, each with the sentence that says what it does. */
export const withExamples = (
  command: Command,
  ...examples: readonly (readonly [string, string])[]
): Command =>
  command.addHelpText(
    "after",
    `\nExamples:\n${examples.map(([line, about]) => `  ${about}:\n    leasehold ${line}`).join("\n")}`,
  );
