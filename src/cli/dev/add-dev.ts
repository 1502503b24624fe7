import { Option, type Command } from "commander";
import { wholeNumber, withExamples } from "../framework/arguments.ts";
import type { Run } from "../framework/run.ts";
import { dev } from "./dev.ts";

export function addDev(program: Command, run: Run): void {
  const command = program
    .command("dev")
    .description("Run a coordinator on this machine, with three cells and their keys, until Ctrl-C.")
    .addOption(
      new Option("--port <port>", "the port; PORT or 8787 by default").argParser(wholeNumber(1, 65_535)),
    )
    .addOption(new Option("--state <folder>", "where the state is; LEASEHOLD_STATE or .leasehold by default"))
    .addOption(new Option("--temporary", "keep nothing when it stops").conflicts("state"))
    .option("--seed <file|count>", "claim this many names, or those of a file of JSON lines")
    .option("--types <file>", "declare the types of a file first")
    .addOption(new Option("--save-as <name>", "the name of the context").default("dev"))
    .option("--no-save", "don't save a context")
    .option("--log", "print every request on standard error; otherwise only what goes wrong")
    .action(run(dev));
  withExamples(
    command,
    ["dev", "Start, or continue with the state of the last time"],
    ["dev --temporary --seed 100", "Try something with 100 names, and leave nothing behind"],
    ["dev --seed users.ndjson", "Claim the names of an export; `cell_id` must be 1, 2 or 3"],
  );
}
