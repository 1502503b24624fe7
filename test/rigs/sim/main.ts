/** `npm run sim`: runs seeds of the simulator. `--help` says how. */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { parseArgs } from "node:util";
import { bugs, plantedSources, unplantable } from "./bugs.ts";
import { bundleSimulator } from "./bundle.ts";
import { missing } from "./coverage.ts";
import {
  findKnownSeeds,
  isExpected,
  mayFind,
  readKnownSeeds,
  runKnownBugs,
  writeKnownSeeds,
} from "./known-seeds.ts";
import { Pool, type Jobs } from "./pool.ts";
import type { RunResult } from "./run.ts";
import type { Shrunk } from "./shrink.ts";
import { loadSimulator, type Simulator } from "./simulator.ts";
import { invariants } from "./violation.ts";

const HELP = `npm run sim -- [options]

  --seed N         runs one seed; if it violates something, prints the shrunk events
  --steps M        events with faults in each run (default 500)
  --seeds N        number of runs, starting at --from (default 100); with a bug, those that may find it
  --from N         the first seed (default 1)
  --minutes N      runs for this time, from a random first seed, which is printed
  --threads N      number of threads (default: all cores)
  --coverage       fails unless every fault, activity, invariant and rule occurred
  --bug NAME       plants a bug; fails unless it is found as an invariant that it may violate
  --bugs           plants each bug over --seeds seeds until it is found, then over its known seed; fails
                   if one is not found
  --list-bugs      lists the bugs that can be planted
  --check-bugs     checks in a second that all bugs can be planted: each piece of source to change exists
                   once, and the changed file can be parsed. Runs nothing. Fails if one cannot
  --known          runs the known seeds: the coverage set, then one seed for each bug
  --find-known     searches for the known seeds that don't find any more what they found, each bug in
                   --seeds runs, then for shorter runs, and writes known-seeds.json
  --keep NAME      shrinks a violation and keeps it as a regression with this name
  --regressions    runs the kept regressions: without their bugs, and with them, which must be found
  --json           prints the summary as JSON in the second-to-last line

After a violation, the last line has the seed and the rule, and the exit code is 1.
`;

const { values } = parseArgs({
  options: {
    seed: { type: "string" },
    steps: { type: "string", default: "500" },
    seeds: { type: "string", default: "100" },
    from: { type: "string" },
    minutes: { type: "string" },
    threads: { type: "string" },
    coverage: { type: "boolean", default: false },
    bug: { type: "string" },
    bugs: { type: "boolean", default: false },
    "list-bugs": { type: "boolean", default: false },
    "check-bugs": { type: "boolean", default: false },
    known: { type: "boolean", default: false },
    "find-known": { type: "boolean", default: false },
    keep: { type: "string" },
    regressions: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
});

const print = (line: string): void => void process.stdout.write(`${line}\n`);
const folder = new URL("./regressions/", import.meta.url);

function wholeNumber(name: string, given: string, least: number): number {
  const number = Number(given);
  if (!/^\d+$/.test(given) || number < least)
    throw new Error(`--${name} must be a whole number of at least ${least}`);
  return number;
}

interface Summary {
  runs: number;
  steps: number;
  seen: Record<string, number>;
  found: RunResult | undefined;
  seconds: number;
}

/** The seeds that --from, --seeds and --minutes select, each once, without those that cannot find the bug. */
function selectedSeeds(steps: number, bug?: string): Jobs["next"] {
  const startedMs = performance.now();
  const minutes = values.minutes === undefined ? undefined : wholeNumber("minutes", values.minutes, 1);
  const from =
    values.from === undefined
      ? minutes === undefined
        ? 1
        : Date.now() % 1_000_000_000
      : wholeNumber("from", values.from, 0);
  const mostRuns = minutes === undefined ? wholeNumber("seeds", values.seeds, 1) : Infinity;
  if (minutes !== undefined) print(`from seed ${from}, for ${minutes} minutes`);
  let seed = from;
  let runs = 0;
  const isOver = (): boolean =>
    runs >= mostRuns || (minutes !== undefined && performance.now() - startedMs > minutes * 60_000);
  return () => {
    if (isOver()) return undefined;
    runs += 1;
    if (bug !== undefined) while (!mayFind(bug, seed)) seed += 1;
    return { bug, seed: seed++, steps };
  };
}

/** Runs seeds until one violates something or no seed is left. */
async function runSeeds(pool: Pool, next: Jobs["next"]): Promise<Summary> {
  const startedMs = performance.now();
  const summary: Summary = { runs: 0, steps: 0, seen: {}, found: undefined, seconds: 0 };
  let spokenMs = startedMs;
  await pool.runAll({
    next,
    onResult: (result) => {
      summary.runs += 1;
      summary.steps += result.steps;
      for (const [what, count] of Object.entries(result.seen))
        summary.seen[what] = (summary.seen[what] ?? 0) + count;
      if (result.violation !== undefined && (summary.found === undefined || result.seed < summary.found.seed))
        summary.found = result;
      if (performance.now() - spokenMs > 30_000) {
        spokenMs = performance.now();
        print(`${summary.runs} runs, ${summary.steps} events`);
      }
      return summary.found === undefined;
    },
  });
  summary.seconds = (performance.now() - startedMs) / 1_000;
  return summary;
}

/** The simulator in this thread. */
const simulator = async (): Promise<Simulator> => loadSimulator(await bundleSimulator());

/** Shrinks a violation and prints the events that remain. */
async function explain({ shrink }: Simulator, found: RunResult, steps: number): Promise<void> {
  const { shrunk, result } = await shrink(found, { bug: values.bug, steps });
  print(
    `seed ${found.seed}, ${shrunk.kept.length} of ${found.actions} ` +
      `actions, without ${shrunk.without.join(", ") || "nothing"}:`,
  );
  for (const line of result.log) print(line);
  print(`  ${result.violation?.message}`);
  if (values.keep !== undefined) keep(values.keep, shrunk);
}

function keep(name: string, shrunk: Shrunk): void {
  if (!/^[a-z0-9-]+$/.test(name)) throw new Error("--keep takes lower-case letters, digits and dashes");
  mkdirSync(folder, { recursive: true });
  writeFileSync(new URL(`${name}.json`, folder), `${JSON.stringify(shrunk, null, 2)}\n`);
  print(`kept as test/rigs/sim/regressions/${name}.json`);
}

const verdictOf = ({ seed, violation }: RunResult): string =>
  `seed ${seed} violates ${violation?.rule}: ` +
  (invariants[violation?.rule as keyof typeof invariants] ?? "a rule of the protocol");

async function seeds(): Promise<boolean> {
  const steps = wholeNumber("steps", values.steps, 1);
  const summary = await runSeeds(await newPool(), selectedSeeds(steps, values.bug));
  const { runs, found, seen, seconds } = summary;
  print(`${runs} runs, ${summary.steps} events, ${Math.round(summary.steps / seconds)} events/s`);
  if (found !== undefined && values.bug === undefined) await explain(await simulator(), found, steps);
  const lacking = values.coverage ? missing(seen) : [];
  if (values.json)
    print(
      JSON.stringify({
        runs,
        steps: summary.steps,
        seconds,
        seed: found?.seed,
        violation: found?.violation,
        missing: lacking,
        seen,
      }),
    );
  if (values.bug !== undefined) {
    return printFound(values.bug, runs, found);
  }
  if (found !== undefined) print(verdictOf(found));
  else
    print(lacking.length > 0 ? `never occurred: ${lacking.join(", ")}` : `nothing violated in ${runs} runs`);
  return found === undefined && lacking.length === 0;
}

function printFound(bug: string, runs: number, found: RunResult | undefined): boolean {
  if (found?.violation === undefined) return (print(`not found in ${runs} runs: ${bug}`), false);
  const wasExpected = isExpected(bug, found);
  const { rule } = found.violation;
  print(
    `found by seed ${found.seed} as ${rule}${wasExpected ? "" : ", which it should not violate"}: ${bug}`,
  );
  return wasExpected;
}

const newPool = (): Promise<Pool> =>
  Pool.start(
    values.threads === undefined ? availableParallelism() : wholeNumber("threads", values.threads, 1),
  );

/** Runs the known seeds, which takes seconds. */
async function known(): Promise<boolean> {
  const knownSeeds = readKnownSeeds();
  const { steps, coverage } = knownSeeds;
  const waiting = coverage.map((seed) => ({ seed, steps }));
  const pool = await newPool();
  const { found: violated, seen } = await runSeeds(pool, () => waiting.shift());
  if (violated !== undefined) return (print(verdictOf(violated)), false);
  const lacking = missing(seen);
  print(
    lacking.length > 0
      ? `never occurred: ${lacking.join(", ")}`
      : `nothing violated in ${coverage.length} runs; everything occurred`,
  );
  const results = await runKnownBugs(knownSeeds, pool);
  const bugsFound = new Set(
    [...results].filter(([bug, result]) => printFound(bug, 1, result)).map(([bug]) => bug),
  );
  const bugsMissed = [...results.keys()].filter((bug) => !bugsFound.has(bug));
  if (values.json) print(JSON.stringify({ coverageRuns: coverage.length, missing: lacking, bugsMissed }));
  print(
    bugsMissed.length === 0
      ? `all ${bugsFound.size} bugs found by their known seeds`
      : `${bugsMissed.length} bugs not found by their known seeds; --find-known searches for others`,
  );
  return lacking.length === 0 && bugsMissed.length === 0;
}

/**
 * Searches for each planted bug and lists those that no seed has found. The known runs must violate nothing
 * without their bugs: otherwise they would find a defect of the simulator instead.
 */
async function everyBug(): Promise<boolean> {
  const steps = wholeNumber("steps", values.steps, 1);
  const pool = await newPool();
  const knownSeeds = readKnownSeeds().bugs;
  const withoutBug = Object.values(knownSeeds);
  const { found: violated } = await runSeeds(pool, () => withoutBug.shift());
  if (violated !== undefined) return (print(`without a bug, ${verdictOf(violated)}`), false);
  const missed: string[] = [];
  for (const bug of Object.keys(bugs)) {
    const selected = selectedSeeds(steps, bug);
    // Few runs find a rare bug, so its known seed comes after the others.
    const left = knownSeeds[bug] === undefined ? [] : [{ bug, ...knownSeeds[bug] }];
    const next: Jobs["next"] = () => selected() ?? left.shift();
    let tried = 0;
    let found: RunResult | undefined;
    // A seed may meet another violation first.
    do {
      const summary = await runSeeds(pool, next);
      tried += summary.runs;
      ({ found } = summary);
    } while (found !== undefined && !isExpected(bug, found));
    if (!printFound(bug, tried, found)) missed.push(bug);
  }
  for (const bug of missed) print(`missed: ${bug}`);
  print(`${Object.keys(bugs).length - missed.length} bugs found, ${missed.length} missed`);
  return missed.length === 0;
}

/** Checks that all bugs can be planted. The bundler parses each changed file. */
async function checkBugs(): Promise<boolean> {
  const messages = unplantable();
  if (messages.length === 0)
    await bundleSimulator().catch((error: Error) => void messages.push(error.message));
  for (const message of messages) print(message);
  print(
    messages.length === 0
      ? `all ${Object.keys(bugs).length} bugs can be planted`
      : "change `file`, `find` and `put` of these bugs in test/rigs/sim/bugs.ts",
  );
  return messages.length === 0;
}

async function oneSeed(): Promise<boolean> {
  const steps = wholeNumber("steps", values.steps, 1);
  const seed = wholeNumber("seed", values.seed ?? "", 0);
  const loaded = await simulator();
  const result = await loaded.run({ bug: values.bug, seed, steps });
  if (result.violation !== undefined) await explain(loaded, result, steps);
  if (values.json) print(JSON.stringify(result));
  print(
    result.violation === undefined
      ? `seed ${seed}: nothing violated in ${result.steps} events`
      : verdictOf(result),
  );
  return result.violation === undefined;
}

/** Runs each kept regression with its shrunk actions. With its bug planted it must be found again. */
async function regressions(): Promise<boolean> {
  const { run, runShrunk } = await simulator();
  let isRight = true;
  for (const name of readdirSync(folder).filter((one) => one.endsWith(".json"))) {
    const shrunk = JSON.parse(readFileSync(new URL(name, folder), "utf8")) as Shrunk;
    const { bug, ...without } = shrunk;
    const found = await runShrunk(shrunk);
    const others = [await runShrunk(without), await run({ seed: shrunk.seed, steps: shrunk.steps })];
    const violated = others.find(({ violation }) => violation !== undefined);
    const isFound = bug === undefined || found.violation?.rule === shrunk.rule;
    if (violated !== undefined) print(`${name}: ${verdictOf(violated)}: ${violated.violation?.message}`);
    else if (bug === undefined) print(`${name}: violates nothing`);
    else if (isFound) print(`${name}: violates ${shrunk.rule} with its bug alone`);
    else print(`${name}: does not violate ${shrunk.rule} with its bug`);
    isRight &&= violated === undefined && isFound;
  }
  return isRight;
}

async function main(): Promise<boolean> {
  if (values.help) return (print(HELP), true);
  if (values["check-bugs"]) return checkBugs();
  // This throws if there is no such bug.
  plantedSources(values.bug);
  if (values["list-bugs"]) {
    for (const [name, { breaks }] of Object.entries(bugs)) print(`${breaks}  ${name}`);
    return true;
  }
  if (values.regressions) return regressions();
  if (values.known) return known();
  if (values.bugs) return everyBug();
  if (values["find-known"]) {
    const [steps, bugRuns] = [wholeNumber("steps", values.steps, 1), wholeNumber("seeds", values.seeds, 1)];
    writeKnownSeeds(await findKnownSeeds(steps, await newPool(), bugRuns, print));
    return true;
  }
  return values.seed === undefined ? seeds() : oneSeed();
}

/** A full pipe makes writes wait, and an exit would drop them. So a slow reader gets everything first. */
const end = (code: number): void => void process.stdout.write("", () => process.exit(code));

main().then(
  (isRight) => end(isRight ? 0 : 1),
  (error: unknown) => {
    print(error instanceof Error ? error.message : String(error));
    end(2);
  },
);
