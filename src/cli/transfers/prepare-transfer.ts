import type { Transfer } from "../../users/client/index.ts";
import { CommandError } from "../framework/command-error.ts";
import type { Context } from "../framework/context.ts";
import { exitCodes } from "../framework/exit-codes.ts";
import type { Result } from "../output/result.ts";
import { commandLine } from "../../common/text/shell-word.ts";
import { confirm, reasonOf, type ChangeOptions } from "../safety/confirm.ts";
import { planned, readPlan, type ScopeOptions } from "./plan-transfer.ts";
import { movedText, nextOf, transferText } from "./transfer-text.ts";

export function prepareTransfer(context: Context, options: ScopeOptions & ChangeOptions): Promise<Result> {
  return prepare(context, options, options);
}

/** Prepares a transfer in the other direction, which is refused if the names have changed since. */
export async function switchBack(context: Context, id: string, options: ChangeOptions): Promise<Result> {
  reasonOf(options);
  const { transfers } = await context.client();
  const before = await transfers.get(id);
  if (before.state !== "FINISHED")
    throw new CommandError(
      `transfer ${id} is ${before.state}, and only a finished one can be undone: nothing was changed`,
      exitCodes.conflict,
      [commandLine("transfers", "show", id)],
    );
  const { from, to, scope } = before;
  return prepare(context, { from: to, to: from, scope }, options, before);
}

async function prepare(
  context: Context,
  moved: ScopeOptions,
  options: ChangeOptions,
  undone?: Transfer,
): Promise<Result> {
  const reason = reasonOf(options);
  const plan = await readPlan(context, moved);
  if (options.dryRun === true) return { document: { plan, changed: false, dry_run: true }, ...planned(plan) };
  const { from, to, scope } = moved;
  await confirm(context, options, {
    name: scope,
    effect:
      `This prepares to move ${movedText(moved)}, because: ${reason}\n` +
      `${plan.claims_total} names can't be claimed, changed or released until the transfer is cut or ` +
      "aborted.",
  });
  const { transfers } = await context.client();
  const transfer = await transfers.prepare(
    { from, to, scope },
    { reason, ...(undone === undefined ? {} : { switchBackOf: undone.id }) },
  );
  const undo = `${commandLine("transfers", "abort", transfer.id)} --reason TEXT`;
  return {
    document: { transfer, changed: true, dry_run: false, undo },
    text: (style) => transferText(transfer, style),
    notes: [
      "The names of the scope are held. Copy the rows now, and let both cells report theirs.",
      `To undo it: ${undo}`,
    ],
    nextSteps: nextOf(transfer),
  };
}
