/**
 * How many requests are tried. As part of the tests: a fixed seed and few runs, so that every change meets
 * the same requests. Run more on demand:
 *
 *     # 3,000 runs with a new seed for each file, which it prints at its start
 *     npm run fuzz
 *     # another number of runs
 *     FUZZ_RUNS=20000 npm run fuzz
 *     # the standalone server instead of `npm start`
 *     FUZZ_HOST=standalone npm run fuzz
 *     # the same requests again
 *     FUZZ_SEED=7 FUZZ_RUNS=2000 npx vitest run test/rigs/fuzz
 *     # one failure again, with the path that it printed
 *     FUZZ_SEED=7 FUZZ_PATH=12:0:3 npx vitest run -t "…"
 *
 * FUZZ_RUNS is the number of requests that each property tries, roughly: one that needs many of them for a
 * run has fewer runs. The server keeps the effects of earlier runs. A failure that depends on them needs the
 * same seed and number of runs; its path alone does not reproduce it.
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

/** The seed. By default it is fixed in tests and random on demand. */
const seed =
  wholeNumber("FUZZ_SEED") ?? (givenRuns === undefined ? 20_261_128 : Math.floor(Math.random() * 1e9));

/**
 * Vitest's timeout, a safety net only: each request has its own check for a hang. On demand, the number of
 * runs decides when a test ends, however slow the machine is.
 */
export const TEST_MS = givenRuns === undefined ? 900_000 : 86_400_000;

/** Ends a slow property before vitest does, so that it reports its failure. */
const LIMIT_MS = TEST_MS - 30_000;

/** The reason to skip a test that needs this many runs. Undefined if it can run. */
export const tooFewRuns = (runs: number): string | undefined => {
  if (path !== undefined && path !== "") return "FUZZ_PATH repeats one failure";
  return givenRuns !== undefined && givenRuns < runs
    ? `FUZZ_RUNS is ${givenRuns}, but this test needs ${runs}`
    : undefined;
};

if (givenRuns !== undefined) console.log(`FUZZ_SEED=${seed} FUZZ_RUNS=${givenRuns}`);

/**
 * Runs one property, first with a value of each of `kinds`. The error of a failure has the seed, the path and
 * the shrunk request as it was sent.
 *
 * @param requestsPerRun the requests of one run, roughly
 */
export async function fuzz<T>(
  runs: number,
  made: fc.Arbitrary<T>,
  check: (value: T) => Promise<void>,
  kinds: readonly fc.Arbitrary<T>[] = [],
  requestsPerRun = 1,
): Promise<void> {
  const numRuns = givenRuns === undefined ? runs : Math.ceil(givenRuns / requestsPerRun);
  const examples = kinds.map((kind, index) => fc.sample(kind, { numRuns: 1, seed: seed + index }) as [T]);
  const { failed, interrupted, counterexamplePath, numShrinks, errorInstance, ...done } = await fc.check(
    fc.asyncProperty(made, check),
    {
      seed,
      numRuns,
      examples,
      plugins: [fc.interruptAfterTimeLimit(LIMIT_MS)],
      ...(path === undefined || path === "" ? {} : { path }),
    },
  );
  if (!failed && !interrupted) return;
  const again = `FUZZ_SEED=${seed} FUZZ_RUNS=${givenRuns ?? runs}, FUZZ_PATH=${counterexamplePath ?? ""}`;
  // If the time ends while a failure is shrunk, the smallest failure so far is reported.
  if (interrupted && counterexamplePath === null)
    throw new Error(`no failure, but the time was over after ${done.numRuns} runs\n\n${again}`);
  const what = errorInstance instanceof Error ? errorInstance.message : String(errorInstance);
  throw new Error(`run ${done.numRuns}, after ${numShrinks} shrinks: ${what}\n\n${again}`, {
    cause: errorInstance,
  });
}
