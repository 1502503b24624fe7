import { Option, type Command } from "commander";
import { cellId, limitOption, transferId, withExamples } from "../framework/arguments.ts";
import type { Run } from "../framework/run.ts";
import { withChangeOptions, type ChangeOptions } from "../safety/confirm.ts";
import {
  finishTransfer,
  listTransfers,
  prepareTransfer,
  switchBack,
  showTransfer,
  verifyTransfer,
} from "./transfers.ts";
import { planTransfer } from "./plan-transfer.ts";
import { stepOfTransfer, type Step } from "./step-of-transfer.ts";

const EXAMPLE = "7-0198c5a0-5f6e-7000-8000-000000000001";

const STEPS: Readonly<Record<Step, string>> = {
  accept: "Accept a transfer for its destination. It changes no name.",
  cut: "Give the names to the destination. This is final, and needs what `transfers verify` checks.",
  abort: "End a transfer that was not cut. Its source keeps the names.",
};

export function addTransfers(program: Command, run: Run): void {
  const group = program
    .command("transfers")
    .description("Transfers: move all names of a scope, such as an organization, to another cell.");
  withExamples(
    group
      .command("ls")
      .description("List transfers: those to one cell after those to another, the latest first.")
      .addOption(new Option("--from <id>", "only transfers from this cell").argParser(cellId))
      .addOption(new Option("--to <id>", "only transfers to this cell").argParser(cellId))
      .addOption(limitOption())
      .action(run(listTransfers)),
    ["transfers ls --to 7", "Transfers to cell 7"],
  );
  withExamples(
    withScope(group.command("plan").description("Count what a transfer would move. Changes nothing.")).action(
      run(planTransfer),
    ),
    ["transfers plan --from 3 --to 7 --scope 9970", "What moves if organization 9970 goes to cell 7"],
  );
  withExamples(
    withChangeOptions(
      withScope(
        group
          .command("prepare")
          .description(
            "Hold the names of a scope on all shards. They can't change until the cut or the abort.",
          ),
      ).action(run(prepareTransfer)),
    ),
    [`transfers prepare --from 3 --to 7 --scope 9970 --reason "balances the load"`, "Begin to move it"],
  );
  for (const step of ["accept", "cut", "abort"] as const)
    withExamples(
      withChangeOptions(
        withId(group.command(step).description(STEPS[step])).action(
          run((context, id: string, options: ChangeOptions) => stepOfTransfer(context, step, id, options)),
        ),
      ),
      [`transfers ${step} ${EXAMPLE} --reason "balances the load"`, "One step of a transfer to cell 7"],
    );
  withExamples(
    withId(
      group
        .command("verify")
        .description("Compare what both cells have reported with the claims. Exit code 10: it can't be cut."),
    ).action(run(verifyTransfer)),
    [`transfers verify ${EXAMPLE}`, "Whether the transfer can be cut"],
  );
  withExamples(
    withChangeOptions(
      withId(
        group
          .command("switch-back")
          .description("Prepare the transfer that undoes a finished one. Accept and cut it like any other."),
      ).action(run(switchBack)),
    ),
    [`transfers switch-back ${EXAMPLE} --reason "the cell is too slow"`, "Begin to move the names back"],
  );
  withExamples(
    withId(group.command("finish").description("Wait until all shards have rewritten the names.")).action(
      run(finishTransfer),
    ),
    [`transfers finish ${EXAMPLE}`, "Wait for the end of a transfer"],
  );
  withExamples(
    withId(group.command("show").description("Show a transfer with its steps.")).action(run(showTransfer)),
    [`transfers show ${EXAMPLE}`, "How far the transfer is"],
  );
}

const withScope = (command: Command): Command =>
  command
    .addOption(
      new Option("--from <id>", "the cell that has the names").argParser(cellId).makeOptionMandatory(),
    )
    .addOption(
      new Option("--to <id>", "the cell that gets the names").argParser(cellId).makeOptionMandatory(),
    )
    .addOption(new Option("--scope <scope>", "the scope of the names").makeOptionMandatory());

const withId = (command: Command): Command =>
  command.argument("<transfer>", "the id of the transfer, such as 7-0198c5a0…", transferId);
