import type { Command } from "commander";
import { withExamples } from "../framework/arguments.ts";
import type { Run } from "../framework/run.ts";
import { scrub } from "./scrub.ts";

export function addScrub(program: Command, run: Run): void {
  const command = program
    .command("scrub")
    .description(
      "Show what the scrubs of shards and ledgers have found. Exit code 1: rows break a rule, or a part " +
        "can't be scrubbed.",
    )
    .argument("[parts...]", "shard-3, or ledger-7 for cell 7; by default all of them")
    .option("--run", "scrub each part from its first row to its last one, and show what that finds")
    .action(run(scrub));
  withExamples(
    command,
    ["scrub", "Show what the last scrubs have found"],
    ["scrub --run", "Scrub all parts now"],
    ["scrub --run shard-3", "Scrub one shard again, after a repair"],
  );
}
