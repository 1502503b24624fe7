import { Option, type Command } from "commander";
import type { AuditEntry } from "../../users/client/index.ts";
import { cellId, duration, limitOption, withExamples } from "../framework/arguments.ts";
import type { Run } from "../framework/run.ts";
import { listAudit } from "./list-audit.ts";

/** The compiler compares them with those of the API. */
const ACTIONS: Readonly<Record<AuditEntry["action"], true>> = {
  add_cell: true,
  change_cell: true,
  freeze_cell: true,
  drain_cell: true,
  undrain_cell: true,
  start_removal: true,
  remove_cell: true,
  unfreeze_cell: true,
  mint_key: true,
  revoke_key: true,
  change_types: true,
  change_identities: true,
  start_growth: true,
  cut_growth: true,
  abort_growth: true,
  start_restore: true,
  end_restore: true,
  finish_upgrade: true,
  begin_lease: true,
  commit_lease: true,
  rollback_lease: true,
  prepare_transfer: true,
  accept_transfer: true,
  report_transfer: true,
  cut_transfer: true,
  abort_transfer: true,
  reconcile_part: true,
  finish_part: true,
  erase_history: true,
  add_webhook: true,
  change_webhook: true,
  remove_webhook: true,
  test_webhook: true,
};

export function addAudit(program: Command, run: Run): void {
  const command = program
    .command("audit")
    .description("List what operators changed, the latest first: when, with which key, and why.")
    .addOption(new Option("--cell <id>", "only changes about this cell").argParser(cellId))
    .option("--key <id>", "only changes with this key")
    .addOption(new Option("--action <action>", "only changes of this kind").choices(Object.keys(ACTIONS)))
    .option("--target <id>", "only changes of this cell, key, lease or part, or of the `types`")
    .addOption(
      new Option("--since <time>", "only changes of the last 7d, 12h, and so on").argParser(duration(1)),
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
