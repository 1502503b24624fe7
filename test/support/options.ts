/**
 * Options of the programs in this repository. An invalid option prints the usage and exits with 2. A failed
 * run exits with 1.
 */

export class BadOption extends Error {}

/** An option that `parseArgs` refuses is also invalid. */
export function parsed<T>(parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    throw new BadOption(error instanceof Error ? error.message : String(error));
  }
}

export function wholeNumber(option: string, given: string | undefined, otherwise: number, least = 0): number {
  if (given === undefined) return otherwise;
  const number = /^\d+$/.test(given) ? Number(given) : Number.NaN;
  if (Number.isSafeInteger(number) && number >= least) return number;
  throw new BadOption(
    `--${option} must be a whole number${least > 0 ? ` from ${least}` : ""}, not ${JSON.stringify(given)}`,
  );
}

export function runProgram(usage: string, main: () => Promise<boolean>): void {
  main().then(
    (isGood) => process.exit(isGood ? 0 : 1),
    (error: unknown) => {
      const isBad = error instanceof BadOption;
      const text = isBad
        ? `${error.message}\n\n${usage}`
        : error instanceof Error
          ? (error.stack ?? error.message)
          : String(error);
      process.stderr.write(`${text}\n`);
      process.exit(isBad ? 2 : 1);
    },
  );
}
