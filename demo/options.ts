import { parseArgs } from "node:util";
import { MAX_NAMES } from "./names.ts";

export interface Options {
  names: number;
  seed: number;
  /** Leaves the state folder in place at the end. */
  keep: boolean;
  help: boolean;
}

const MIN_NAMES = 100;

export const usage = `Usage: npm run demo -- [options]

Starts a coordinator on this machine, takes real names through it as two cells would,
and checks at the end that every name has at most one owner.

  --names N   how many names, ${MIN_NAMES} to ${MAX_NAMES} (default ${MAX_NAMES})
  --seed N    another seed: other owners, other lost answers (default 1)
  --keep      leave the state folder in place and say where it is
  --help      this text

Ends with 0 when the check holds, 1 when it fails, 2 when the options are wrong.
`;

/** Throws an `Error` with one plain sentence when an option is not known or makes no sense. */
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
