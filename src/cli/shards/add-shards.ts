import { Option, type Command } from "commander";
import { MAX_SHARDS } from "../../coordinator/kernel/placement.ts";
import { wholeNumber, withExamples } from "../framework/arguments.ts";
import type { Run } from "../framework/run.ts";
import { withChangeOptions } from "../safety/confirm.ts";
import { abortGrowth, showShards } from "./shards.ts";
import { growShards } from "./grow-shards.ts";

export function addShards(program: Command, run: Run): void {
  const group = program.command("shards").description("Shards: show their number, and get more of them.");
  withExamples(
    group
      .command("show", { isDefault: true })
      .description("Show the number of shards, and how far a growth is.")
      .action(run(showShards)),
    ["shards", "Show the number of shards"],
    ["shards show --jsonl", "Show it for a program"],
  );
  withExamples(
    withChangeOptions(
      group
        .command("grow")
        .description("Get more shards while everything works. Repeated, it goes on.")
        .addOption(
          new Option("--to <number>", "how many shards the deployment shall have")
            .argParser(wholeNumber(1, MAX_SHARDS))
            .makeOptionMandatory(),
        )
        .option("--no-cut", "stop before the new shards are used; until then it can be aborted"),
    ).action(run(growShards)),
    ["shards grow --to 16 --dry-run", "Show what share of the names would move"],
    ['shards grow --to 16 --reason "begins wait for the shards"', "Get 16 shards"],
  );
  withExamples(
    withChangeOptions(group.command("abort").description("End a growth that was not cut.")).action(
      run(abortGrowth),
    ),
    ['shards abort --reason "the wrong number"', "Keep the number of shards"],
  );
}
