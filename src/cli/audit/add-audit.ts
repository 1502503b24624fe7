import { Option, type Command } from "commander";
import { cellId, duration, limitOption } from "../framework/arguments.ts";
import { withExamples } from "../framework/example.ts";
import type { Run } from "../framework/run.ts";
import { listAudit } from "./list-audit.ts";

const ACTIONS = [
  "add_cell",
  "change_cell",
  "freeze_cell",
  "unfreeze_cell",
  "mint_key",
  "revoke_key",
  "change_types",
  "begin_lease",
  "commit_lease",
  "rollback_lease",
  "reconcile_part",
  "finish_part",
  "erase_history",
] as const;

export function addAudit(program: Command, run: Run): void {
  const command = program
    .command("audit")
    .description("List what operators changed, the latest first: when, with which key, and why.")
    .addOption(new Option("--cell <id>", "only changes about this cell").argParser(cellId))
    .option("--key <id>", "only changes with this key")
    .addOption(new Option("--action <action>", "only changes of this kind").choices(ACTIONS))
    .option("--target <id>", "only changes of this cell, key, lease or part, or of the `types`")
    .addOption(
      new Option("--since <time>", "only changes of the last 7d, 12h, and so on").argParser(duration),
    )
    .addOption(limitOption())
    .action(run(listAudit));
  withExamples(
    command,
    ["audit --since 7d", "The changes of the last week"],
    ["audit --cell 7 --json", "Every change about cell 7, with the state before and after"],
    ["audit --target 0198c5a0-5f6e-7000-8000-000000000001", "Who decided this lease, and why"],
  );
}
