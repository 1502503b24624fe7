/** Measures a verification of a million rows with and without digests, a backfill, and an export. */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { codeVersion } from "../code-version.ts";
import type { CallCounts } from "./count-reads.ts";
import { Measurement } from "./measurement.ts";
import { BadOption, inFolder, runProgram } from "../program.ts";
import { readOptions, usage, type Options } from "./options.ts";
import { writeReport } from "./report.ts";
import { Results } from "./results.ts";

const KEPT = join(import.meta.dirname, "../../.bench");

const print = (line: string): void => void process.stdout.write(`${line}\n`);

async function measure(options: Options): Promise<void> {
  const results = new Results(
    join(KEPT, options.isWhole ? "verification.jsonl" : `verification-${options.rows}.jsonl`),
  );
  if (!options.reportOnly) await run(options, results);
  if (results.all.length === 0)
    throw new BadOption("there are no results yet; run the benchmark without --report first");
  const path = options.isWhole
    ? join(import.meta.dirname, "../../docs/bench/verification.md")
    : join(KEPT, "report/verification.md");
  writeReport(results.all, readCounts(), path);
  print(`wrote ${path}`);
}

/** The counts per call, which depend only on the code. */
const COUNTS = join(KEPT, "verification-counts.json");
const readCounts = (): CallCounts[] =>
  existsSync(COUNTS) ? (JSON.parse(readFileSync(COUNTS, "utf8")) as CallCounts[]) : [];
const keepCounts = (counts: readonly CallCounts[]): void =>
  writeFileSync(COUNTS, `${JSON.stringify(counts, null, 2)}\n`);

async function run(options: Options, results: Results): Promise<void> {
  await inFolder("verification", async (root, atEnd) => {
    const measurement = new Measurement(options, { results, keepCounts }, codeVersion(), root, print);
    atEnd(() => measurement.stop());
    await measurement.run();
  });
}

await runProgram({ name: "verification", usage, readOptions, run: measure });
