/** `npm run bench`: Leasehold beside what people would pick instead, on this machine, in one run. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Bench, type Scale } from "./measure/bench.ts";
import { measures } from "./measure/parts.ts";
import { BadOption, readOptions, usage, type Options } from "./options.ts";
import { writeReport } from "./report/report.ts";
import { Results } from "./results.ts";

const QUICK: Scale = { rounds: 3, seconds: 1, loadSeconds: 10 };
const FULL: Scale = { rounds: 7, seconds: 5, loadSeconds: 600 };

const say = (line: string): void => void process.stdout.write(`${line}\n`);

async function bench(options: Options): Promise<number> {
  const results = new Results(
    join(import.meta.dirname, `../.bench/${options.full ? "full" : "quick"}.jsonl`),
    options.fresh || (!options.full && !options.reportOnly),
  );
  if (!options.reportOnly) await run(options, results);
  writeReport(results.all);
  const errors = results.all.reduce((sum, result) => sum + result.errors, 0);
  say(`docs/bench/results.md is written; ${errors} turns did not end as they should`);
  return errors === 0 ? 0 : 1;
}

async function run(options: Options, results: Results): Promise<void> {
  const root = mkdtempSync(join(tmpdir(), "leasehold-bench-"));
  const running = new Bench(options.only, options.full ? FULL : QUICK, results, root, say);
  try {
    await running.start();
    for (const part of options.parts) await measures[part](running);
  } finally {
    await running.stop();
    rmSync(root, { recursive: true, force: true, maxRetries: 5 });
  }
}

try {
  const options = readOptions(process.argv.slice(2));
  if (options === undefined) say(usage);
  process.exitCode = options === undefined ? 0 : await bench(options);
} catch (error) {
  const isBad = error instanceof BadOption;
  process.stderr.write(
    `bench: ${isBad ? `${error.message}\n\n${usage}` : error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`,
  );
  process.exitCode = isBad ? 2 : 1;
}
