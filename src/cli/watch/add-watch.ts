import { Option, type Command } from "commander";
import { cellId, intervalOption, withExamples } from "../framework/arguments.ts";
import type { Run } from "../framework/run.ts";
import { watch } from "./watch.ts";

export function addWatch(program: Command, run: Run): void {
  const command = program
    .command("watch")
    .description("Print when the owners of names change, or without names what happens in the deployment.")
    .argument("[names...]", "names of one type, at most 1,000")
    .option("--changes", "print every change of leases and claims, from the change feed")
    .option("--type <type>", "the bucket type of the names")
    .addOption(new Option("--cell <id>", "only what concerns this cell").argParser(cellId))
    .option(
      "--from <position>",
      "continue there, as the end of a watch says; without names and --changes a time",
    )
    .addOption(intervalOption(2))
    .action(run(watch));
  withExamples(
    command,
    ["watch ada grace --type USERNAMES", "Print when one of two names changes hands"],
    ["watch --cell 7 --jsonl", "Print what happens to cell 7, for a program"],
    ["watch --changes --jsonl", "Print every grant, commit, rollback, claim and release"],
    ["watch --from 1h", "Begin with the audit of the last hour"],
  );
}
