import type { Command } from "commander";
import { withExamples } from "../framework/arguments.ts";
import type { Run } from "../framework/run.ts";
import { withChangeOptions } from "../safety/confirm.ts";
import { endOperation, listOperations } from "./operations.ts";

export function addOperations(program: Command, run: Run): void {
  const group = program
    .command("operations")
    .description("Operations that run: growths, restores, reconciliations.");
  withExamples(
    group
      .command("ls", { isDefault: true })
      .description("List the operations that run, and how to end each of them.")
      .action(run(listOperations)),
    ["operations", "See what keeps another operation from starting"],
    ["operations ls --jsonl", "List them for a program"],
  );
  withExamples(
    withChangeOptions(
      group
        .command("end")
        .description("Say that a restore has ended, so that other operations may start.")
        .argument("<id>", "the id of the restore"),
    ).action(run(endOperation)),
    [
      'operations end 01936f6e-2c1a-7c3e-9d56-3a1f0c9b7e42 --reason "given up"',
      "Give up a restore that was interrupted",
    ],
  );
}
