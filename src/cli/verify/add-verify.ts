import { Option, type Command } from "commander";
import { cellId, withExamples } from "../framework/arguments.ts";
import type { Run } from "../framework/run.ts";
import { verifyReport, verifyStatus } from "./verify.ts";

export function addVerify(program: Command, run: Run): void {
  const group = program
    .command("verify")
    .description("What the verifications of cells found, as the cells report it. Cells verify themselves.");
  withExamples(
    group
      .command("status")
      .description(
        "Show the last verification of each cell. Exit code 10: there is drift. 1: a cell is silent, can't " +
          "be reached, or was never verified.",
      )
      .action(run(verifyStatus)),
    ["verify status", "Show what the last verifications found"],
    ["verify status --json", "For scripts: the field `drift` of each cell"],
  );
  withExamples(
    group
      .command("report")
      .description("Show the last report of a cell with all counts. The exit codes are those of `status`.")
      .addOption(
        new Option("--cell <id>", "the cell that was verified").argParser(cellId).makeOptionMandatory(),
      )
      .action(run(verifyReport)),
    ["verify report --cell 7", "Show what cell 7 reported"],
  );
}
