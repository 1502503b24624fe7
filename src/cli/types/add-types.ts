import { Option, type Command } from "commander";
import { withExamples } from "../framework/arguments.ts";
import type { Run } from "../framework/run.ts";
import { withChangeOptions } from "../safety/confirm.ts";
import { applyTypes, planTypes, showTypes } from "./types.ts";

export function addTypes(program: Command, run: Run): void {
  const group = program.command("types").description("The types of names, subjects and sources.");
  withExamples(
    withFile(
      group
        .command("plan")
        .description("Show what a file would change. Exit code 10: it differs. Exit code 3: it is refused."),
    ).action(run(planTypes)),
    ["types plan --file leasehold.types.json", "Compare the file with the deployment"],
  );
  withExamples(
    withChangeOptions(
      withFile(group.command("apply").description("Make the types those of a file, all of it or nothing.")),
    ).action(run(applyTypes)),
    ['types apply --reason "handles for stores"', "Declare the types of leasehold.types.json"],
  );
  withExamples(
    group
      .command("show")
      .description("Print the types of the deployment as a file, and say which are in use.")
      .action(run(showTypes)),
    ["types show > leasehold.types.json", "Save the types in a file"],
  );
}

const withFile = (command: Command): Command =>
  command.addOption(new Option("--file <path>", "the file of types").default("leasehold.types.json"));
