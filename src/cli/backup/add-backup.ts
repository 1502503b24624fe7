import type { Command } from "commander";
import { withExamples } from "../framework/arguments.ts";
import type { Run } from "../framework/run.ts";
import { withChangeOptions } from "../safety/confirm.ts";
import { createBackup } from "./create-backup.ts";
import { restore } from "./restore.ts";
import { verifyBackup } from "./verify-backup.ts";

export function addBackup(program: Command, run: Run): void {
  const group = program.command("backup").description("Backups: write all claims to a file, and check it.");
  withExamples(
    group
      .command("create", { isDefault: true })
      .description("Write a backup of the deployment. The file has names, and only you can read it.")
      .argument("<file>", "the file to write")
      .option("--resume", "continue a backup that was interrupted")
      .option("--force", "replace the file if it exists")
      .option("--no-verify", "don't compare the backup with the deployment")
      .action(run(createBackup)),
    ["backup create leasehold.jsonl", "Write a backup"],
    ["backup create leasehold.jsonl --resume", "Continue after an interruption"],
  );
  withExamples(
    group
      .command("verify")
      .description("Check the hash, the counts and the digests of a backup.")
      .argument("<file>", "the backup")
      .option("--online", "also compare it with the deployment")
      .action(run(verifyBackup)),
    ["backup verify leasehold.jsonl", "Check a file"],
    ["backup verify leasehold.jsonl --online", "Check a file, and compare it with the deployment"],
  );
  withExamples(
    withChangeOptions(
      program
        .command("restore")
        .description("Restore a backup into a deployment that was never used. Repeated, it goes on.")
        .argument("<file>", "the backup")
        .option("--lower-epochs", "don't keep epochs above those of the backup")
        .action(run(restore)),
    ),
    ["restore leasehold.jsonl --dry-run", "Show what would be restored"],
    ['restore leasehold.jsonl --reason "the coordinator was lost"', "Restore a backup"],
  );
}
