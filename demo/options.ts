import { parseArgs } from "node:util";
import { MAX_NAMES } from "./names.ts";

export interface Options {
  names: number;
  seed: number;
  /** Keeps the state folder at the end. */
  keep: boolean;
  help: boolean;
}

const MIN_NAMES = 100;

export const usage = `Usage: npm run demo -- [options]

Starts a coordinator on this machine and lets two cells compete for real names. It loses answers,
kills a cell, and checks at the end that every name has at most one owner.

  --names N   number of names, from ${MIN_NAMES} to ${MAX_NAMES} (default ${MAX_NAMES})
  --seed N    seed of all random choices, such as which answers get lost (default 1)
  --keep      keep the state folder, and print its path
  --help      show this text

Exit codes: 0 if the check passed, 1 if the check or the demo failed, 2 if an option is invalid.
`;

/** Throws an `Error` with a one-sentence message if an option is unknown or has an invalid value. */
export function readOptions(args: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...args],
    options: {
      names: { type: "string" },
      seed: { type: "string" },
      keep: { type: "boolean" },
      help: { type: "boolean" },
    },
    strict: true,
    allowPositionals: false,
  });
  return {
    names: wholeNumber("--names", values.names ?? String(MAX_NAMES), MIN_NAMES, MAX_NAMES),
    seed: wholeNumber("--seed", values.seed ?? "1", 0, 0xffff_ffff),
    keep: values.keep ?? false,
    help: values.help ?? false,
  };
}

function wholeNumber(name: string, given: string, least: number, most: number): number {
  const value = Number(given);
  if (!/^\d+$/.test(given) || value < least || value > most)
    throw new Error(`${name} must be a whole number from ${least} to ${most}`);
  return value;
}
