import type { Command } from "commander";
import { intervalOption, withExamples } from "../framework/arguments.ts";
import type { Run } from "../framework/run.ts";
import { status } from "./status.ts";

export function addStatus(program: Command, run: Run): void {
  const command = program
    .command("status")
    .description("Show the deployment on one screen, and why it is not green. Exit code 1: it is not green.")
    .option("--watch", "show it again and again, until Ctrl-C")
    .addOption(intervalOption(5))
    .action(run(status));
  withExamples(
    command,
    ["status", "Show the deployment now"],
    ["status --watch --interval 10s", "Look every 10 seconds"],
    ["status --json", "For scripts: the field `green` and a list of `reasons`"],
  );
}
