/**
 * What the programs here have in common: a bad option prints the usage and ends with 2, a failed run ends
 * with 1.
 */

export class BadOption extends Error {}

/** What `parseArgs` refuses is a bad option as well. */
export function parsed<T>(parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    throw new BadOption(error instanceof Error ? error.message : String(error));
  }
}

interface Program<Options> {
  name: string;
  usage: string;
  /** Undefined: only the usage was asked for. */
  readOptions: (argv: readonly string[]) => Options | undefined;
  /** Answers the exit code; nothing for 0. */
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
