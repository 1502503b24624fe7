import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/**
 * The common frame of the benchmark programs. A wrong option prints the usage and exits with 2, and a failed
 * run exits with 1.
 */

export class BadOption extends Error {}

/** Converts an error of `parseArgs` to a `BadOption`. */
export function parsed<T>(parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    throw new BadOption(error instanceof Error ? error.message : String(error));
  }
}

/** Reads an option that is a whole number above 0. */
export function numberOf(name: string, given: string | undefined, usual: number): number {
  const value = given === undefined ? usual : Number(given);
  if (!Number.isSafeInteger(value) || value < 1)
    throw new BadOption(`--${name} takes a whole number above 0, not ${JSON.stringify(given)}`);
  return value;
}

export const medianOf = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;

interface Program<Options> {
  name: string;
  usage: string;
  /** Returns undefined when only the usage was asked for. */
  readOptions: (argv: readonly string[]) => Options | undefined;
  /** Returns the exit code, or nothing for 0. */
  run: (options: Options) => Promise<number | void>;
}

export async function runProgram<Options>({
  name,
  usage,
  readOptions,
  run,
}: Program<Options>): Promise<void> {
  try {
    const options = readOptions(process.argv.slice(2));
    if (options === undefined) process.stdout.write(`${usage}\n`);
    else process.exitCode = (await run(options)) ?? 0;
  } catch (error) {
    const isBad = error instanceof BadOption;
    const what = isBad
      ? `${error.message}\n\n${usage}`
      : error instanceof Error
        ? (error.stack ?? error.message)
        : String(error);
    process.stderr.write(`${name}: ${what}\n`);
    process.exitCode = isBad ? 2 : 1;
  }
}

/**
 * Runs work that keeps its files in a folder of its own. Afterwards, and also if a signal ends the program,
 * what was started is stopped, the last one first, and the folder is deleted.
 */
export async function inFolder(
  name: string,
  work: (root: string, atEnd: (stop: () => Promise<void>) => void) => Promise<void>,
): Promise<void> {
  const root = mkdtempSync(join(tmpdir(), `leasehold-${name}-`));
  const stops: (() => Promise<void>)[] = [];
  const end = async (): Promise<void> => {
    for (const stop of stops.toReversed()) await stop();
    rmSync(root, { recursive: true, force: true, maxRetries: 5 });
  };
  for (const signal of ["SIGINT", "SIGTERM"] as const)
    process.once(signal, () => void end().finally(() => process.exit(130)));
  try {
    await work(root, (stop) => void stops.push(stop));
  } finally {
    await end();
  }
}
