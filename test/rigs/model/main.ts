/**
 * `npm run model`: checks the protocol's model. Every base run must hold and be searched completely. Every
 * variant, which has one rule switched off, must fail as expected; otherwise the model would not notice that
 * the rule is missing. Each property must be found broken by some variant.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { BadOption, parsed } from "../../support/options.ts";
import { bases, CYCLE, variants, type BaseRun, type ModelRun, type VariantRun } from "./runs.ts";
import { requireTools, isVariant, propertyNames, search, steps, type Found, type Limits } from "./spin.ts";

const USAGE = `npm run model -- [options]

  --quick         skips the base runs that take more than about ten seconds
  --full          also searches the larger state spaces
  --only NAME     runs one search
  --trail NAME    runs one search and describes its counterexample
  --help          prints this text`;

/** The number of searches at the same time. Each may need some GB. */
const AT_ONCE = 2;
/** The time limit of a search. It is generous, so that a slow machine does not make a check fail. */
const LIMIT_MS = 600_000;
const FULL_LIMIT_MS = 3 * 3_600_000;

/** Ends the searches together with this process. */
const interrupted = new AbortController();
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
  process.once(signal, () => interrupted.abort());

const limitsOf = (run: ModelRun): Limits => ({
  ms: run.size === "full" ? FULL_LIMIT_MS : LIMIT_MS,
  end: interrupted.signal,
});

const COLUMNS = [22, 10, 24, 24, 24, 12, 8, 8] as const;

const print = (line: string): void => void process.stdout.write(`${line}\n`);
const rowOf = (...cells: string[]): string =>
  cells
    .map((cell, index) => cell.padEnd(COLUMNS[index] ?? 0))
    .join(" ")
    .trimEnd();

function passes(run: BaseRun | VariantRun, found: Found): boolean {
  return isVariant(run)
    ? found.violation === run.expected
    : found.violation === undefined && found.complete && found.states >= run.least;
}

function foundIn(run: BaseRun | VariantRun, { violation, complete, complaint, states }: Found): string {
  if (violation !== undefined) return violation;
  if (!complete) return `not complete: ${complaint || "no result"}`;
  return isVariant(run) || states >= run.least ? "nothing" : "too few states";
}

const again = (name: string): void => print(`to see the steps: npm run model -- --trail ${name}`);

function report(run: BaseRun | VariantRun, found: Found): boolean {
  const passed = passes(run, found);
  const [rule, off, expected] = isVariant(run) ? [run.rule, run.off, run.expected] : ["all", "-", "nothing"];
  const figures = [found.states.toLocaleString("en"), found.seconds.toFixed(1), found.memoryMb.toFixed(0)];
  print(
    `${rowOf(run.name, rule, off, expected, foundIn(run, found), ...figures)}${passed ? "" : "   FAILED"}`,
  );
  if (!passed) again(run.name);
  return passed;
}

async function check(run: BaseRun | VariantRun, folder: string): Promise<boolean> {
  try {
    return report(run, await search(run, join(folder, run.name), limitsOf(run)));
  } catch (error) {
    if (interrupted.signal.aborted) throw error;
    print(`${run.name}: ${error instanceof Error ? error.message : String(error)}   FAILED`);
    again(run.name);
    return false;
  } finally {
    await rm(join(folder, run.name), { recursive: true, force: true });
  }
}

/** Runs the searches in the order of the list, long ones first, several at a time. */
async function checkAll(runs: readonly (BaseRun | VariantRun)[], folder: string): Promise<number> {
  print(rowOf("name", "rule", "switched off", "expected", "found", "states", "seconds", "MB"));
  const waiting = [...runs];
  let failed = 0;
  const work = async (): Promise<void> => {
    for (let run = waiting.shift(); run !== undefined; run = waiting.shift())
      if (!(await check(run, folder))) failed += 1;
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  print(`${runs.length - failed} passed, ${failed} failed`);
  return failed;
}

/** Fails if no variant breaks a property, because such a property may be impossible to break. */
async function refuseUnexpected(): Promise<void> {
  const expected = new Set(variants.map((variant) => variant.expected));
  const models = ["lease.pml", "route.pml", "holds.pml", "ledger.pml"] as const;
  const named = await Promise.all(models.map(propertyNames));
  const properties = [...named.flatMap((names) => [...names.values()]), CYCLE];
  const unexpected = properties.filter((property) => !expected.has(property));
  if (unexpected.length > 0) throw new Error(`no variant expects ${unexpected.join(", ")}`);
}

async function showTrail(run: BaseRun | VariantRun, folder: string): Promise<number> {
  const found = await search(run, join(folder, run.name), { ...limitsOf(run), shortest: true });
  print(
    `${run.name}: ${isVariant(run) ? `rule ${run.rule} switched off (${run.off})` : "nothing switched off"}`,
  );
  print(`${run.description}.`);
  print("");
  if (found.violation !== undefined)
    for (const [index, step] of (await steps(run, join(folder, run.name))).entries())
      print(`${index + 1}. ${step}`);
  print("");
  print(`found: ${foundIn(run, found)}`);
  return passes(run, found) ? 0 : 1;
}

function oneOf<T extends ModelRun>(runs: readonly T[], name: string): T {
  const run = runs.find((each) => each.name === name);
  if (run === undefined)
    throw new BadOption(`unknown run ${name}; known runs: ${runs.map((each) => each.name).join(", ")}`);
  return run;
}

async function main(): Promise<number> {
  const { values } = parsed(() =>
    parseArgs({
      options: {
        full: { type: "boolean" },
        quick: { type: "boolean" },
        only: { type: "string" },
        trail: { type: "string" },
        help: { type: "boolean" },
      },
    }),
  );
  if (values.help === true) {
    print(USAGE);
    return 0;
  }
  if (values.quick === true && values.full === true)
    throw new BadOption("--quick and --full exclude each other");
  const sizes: ModelRun["size"][] = [undefined];
  if (values.quick !== true) sizes.push("whole");
  if (values.full === true) sizes.push("full");
  if (values.only !== undefined && values.trail !== undefined)
    throw new BadOption("--only and --trail exclude each other");
  const all = [...bases, ...variants];
  const trail = values.trail === undefined ? undefined : oneOf(all, values.trail);
  const runs =
    values.only === undefined ? all.filter(({ size }) => sizes.includes(size)) : [oneOf(all, values.only)];
  if (values.only === undefined && trail === undefined) await refuseUnexpected();
  requireTools();
  const folder = await mkdtemp(join(tmpdir(), "leasehold-model-"));
  try {
    return trail === undefined ? await checkAll(runs, folder) : await showTrail(trail, folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

try {
  process.exitCode = (await main()) === 0 ? 0 : 1;
} catch (error) {
  const isBad = error instanceof BadOption;
  process.stderr.write(
    `model: ${error instanceof Error ? error.message : String(error)}\n${isBad ? `\n${USAGE}\n` : ""}`,
  );
  process.exitCode = isBad ? 2 : 1;
}
