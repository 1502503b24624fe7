import type { Command } from "commander";
import { withExamples } from "../framework/arguments.ts";
import type { Run } from "../framework/run.ts";
import { withChangeOptions } from "../safety/confirm.ts";
import { finishPart, reconcilePart, showPart } from "./parts.ts";

const PART = "shard-3, ledger-7 for cell 7, or directory";

export function addParts(program: Command, run: Run): void {
  const group = program
    .command("parts")
    .description("The objects of the coordinator: shards, ledgers and the directory.");
  withExamples(
    group
      .command("show")
      .description("Show whether a part has gone back in time, and what was noticed.")
      .argument("<part>", PART)
      .action(run(showPart)),
    ["parts show shard-3", "Show what was noticed, by whom, and when"],
  );
  withExamples(
    withChangeOptions(
      group
        .command("reconcile")
        .description("Accept that a part has gone back in time, and rebuild what other parts know of it.")
        .argument("<part>", PART)
        .option(
          "--declare-lost",
          "you know that the storage of the part was set back, although the part has not noticed it",
        ),
    ).action(run(reconcilePart)),
    ["parts reconcile shard-3 --dry-run", "Show what would be done"],
    ['parts reconcile shard-3 --reason "restored from a backup of 14:00"', "Accept the loss"],
  );
  withExamples(
    withChangeOptions(
      group
        .command("finish")
        .description("Take a reconciled shard back into service, once every cell has verified.")
        .argument("<part>", PART),
    ).action(run(finishPart)),
    ['parts finish shard-3 --reason "all cells have verified"', "End the reconciliation of a shard"],
  );
}
