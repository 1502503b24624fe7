import { Option, type Command } from "commander";
import { cellId, duration, wholeNumber, withExamples } from "../framework/arguments.ts";
import type { Run } from "../framework/run.ts";
import { bench } from "./bench.ts";

/** All times and names of a run are in memory. */
const MAX_LEASES = 100_000;
const MAX_CONCURRENCY = 128;
const MAX_S = 600;

export function addBench(program: Command, run: Run): void {
  const command = program
    .command("bench")
    .description("Measure begins, commits, rollbacks and lookups, and give up the names again.")
    .addOption(
      new Option("--for <time>", "how long, from 1s to 10m").argParser(duration(1, MAX_S)).default(10, "10s"),
    )
    .addOption(
      new Option("--leases <count>", "end after so many leases")
        .argParser(wholeNumber(1, MAX_LEASES))
        .default(MAX_LEASES),
    )
    .addOption(
      new Option("--concurrency <count>", "leases at a time")
        .argParser(wholeNumber(1, MAX_CONCURRENCY))
        .default(8),
    )
    .addOption(
      new Option(
        "--cell <id>",
        "the cell, for an operator key; by default one for this run, which is removed again",
      ).argParser(cellId),
    )
    .addOption(new Option("--type <type>", "the bucket type of the names").default("USERNAMES"))
    .addOption(new Option("--subject <type>", "their subject type").default("USER"))
    .addOption(new Option("--source <type>", "their source type").default("RAILS_TABLE_USERS"))
    .option("--clean-up <run>", "only give up the names of an earlier run")
    .option("--yes", "don't ask; required where nobody can be asked, unless the URL is of this machine")
    .action(run(bench));
  withExamples(
    command,
    ["bench --for 30s --concurrency 16", "Measure for 30 seconds"],
    ["bench --context staging --leases 1000 --yes --json", "Measure 1,000 leases, for a script"],
    ["bench --clean-up 1f3b5c7d", "Give up what a killed run has left behind, and remove its cell"],
  );
}
