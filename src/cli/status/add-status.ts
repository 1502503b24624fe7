import { Option, type Command } from "commander";
import { duration } from "../framework/arguments.ts";
import { withExamples } from "../framework/example.ts";
import type { Run } from "../framework/run.ts";
import { status } from "./status.ts";

export function addStatus(program: Command, run: Run): void {
  const command = program
    .command("status")
    .description("Show the deployment on one screen, and why it is not green. Exit code 1: it is not green.")
    .option("--watch", "show it again and again, until Ctrl-C")
    .addOption(
      new Option("--interval <time>", "the time between two looks").argParser(duration).default(5, "5s"),
    )
    .action(run(status));
  withExamples(
    command,
    ["status", "Show the deployment now"],
    ["status --watch --interval 10s", "Look every 10 seconds"],
    ["status --json", "For scripts: the field `green` and a list of `reasons`"],
  );
}
