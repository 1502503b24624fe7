/**
 * How much is tried. As part of the tests: a fixed seed and few runs, so that every change meets the same requests. On demand more:
 *
 *     npm run fuzz                                           3,000 runs; another seed each time and for each file, printed at its start
 *     FUZZ_RUNS=20000 npm run fuzz                           as many as that
 *     FUZZ_SEED=7 FUZZ_RUNS=2000 npx vitest run test/rigs/fuzz    the same requests again
 *     FUZZ_SEED=7 FUZZ_PATH=12:0:3 npx vitest run -t "…"     one failure again, by the path that was printed with it
 *
 * FUZZ_RUNS is the number of runs of each property. The server remembers what earlier runs did to it: a failure that needs them is not
 * reproduced by its path alone, but by its seed and the number of runs.
 */
import * as fc from "fast-check";

const wholeNumber = (name: string): number | undefined => {
  const given = process.env[name];
  if (given === undefined || given === "") return undefined;
  if (!/^\d{1,9}$/.test(given)) throw new Error(`${name} must be a whole number`);
  return Number(given);
};

const givenRuns = wholeNumber("FUZZ_RUNS");
const path = process.env["FUZZ_PATH"];

/** Each test file has its own, unless it is given. */
const seed =
  wholeNumber("FUZZ_SEED") ?? (givenRuns === undefined ? 20_261_121 : Math.floor(Math.random() * 1e9));

/** For vitest: only a safety net. Whether something hangs is found out for each request by itself. */
export const TEST_MS = 120_000 + (givenRuns ?? 0) * 1_000;

/** So that a property that fails slowly still says with what, and is not just out of time. */
const LIMIT_MS = TEST_MS - 30_000;

/** Why a test that counts on so many runs has to be skipped; undefined: it need not be. */
export const tooFewRuns = (runs: number): string | undefined => {
  if (path !== undefined && path !== "") return "FUZZ_PATH tries one failure again";
  return givenRuns !== undefined && givenRuns < runs
    ? `FUZZ_RUNS is ${givenRuns}, and this counts on ${runs}`
    : undefined;
};

if (givenRuns !== undefined) console.log(`FUZZ_SEED=${seed} FUZZ_RUNS=${givenRuns}`);

/** Runs one property; the error of a failure has the seed, the path and the shrunk request as it went over the wire. */
export async function fuzz<T>(
  runs: number,
  made: fc.Arbitrary<T>,
  check: (value: T) => Promise<void>,
): Promise<void> {
  const { failed, interrupted, counterexamplePath, numRuns, numShrinks, errorInstance } = await fc.check(
    fc.asyncProperty(made, check),
    {
      seed,
      numRuns: givenRuns ?? runs,
      plugins: [fc.interruptAfterTimeLimit(LIMIT_MS)],
      ...(path === undefined || path === "" ? {} : { path }),
    },
  );
  if (!failed && !interrupted) return;
  const again = `FUZZ_SEED=${seed} FUZZ_RUNS=${givenRuns ?? runs}, FUZZ_PATH=${counterexamplePath ?? ""}`;
  // Out of time while a failure is being shrunk is the other case: then it is the smallest so far.
  if (interrupted && counterexamplePath === null)
    throw new Error(`no failure, but out of time after ${numRuns} runs\n\n${again}`);
  const what = errorInstance instanceof Error ? errorInstance.message : String(errorInstance);
  throw new Error(`run ${numRuns}, after ${numShrinks} shrinks: ${what}\n\n${again}`, {
    cause: errorInstance,
  });
}
