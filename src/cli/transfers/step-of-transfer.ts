import type { Transfer } from "../../users/client/index.ts";
import { CommandError, exitCodes } from "../framework/command-error.ts";
import type { Context } from "../framework/context.ts";
import type { Result } from "../output/result.ts";
import { commandLine } from "../../common/text/shell-word.ts";
import { confirm, reasonOf, type ChangeOptions } from "../safety/confirm.ts";
import { movedText, nextOf, transferText } from "./transfer-text.ts";

export type Step = "accept" | "cut" | "abort";

interface About {
  isDone: (transfer: Transfer) => boolean;
  /** What the step makes of the transfer. */
  becomes: string;
  effect: (transfer: Transfer) => string;
  undo: (transfer: Transfer) => string | null;
}

const abortLine = ({ id }: Transfer): string => `${commandLine("transfers", "abort", id)} --reason TEXT`;

const steps: Readonly<Record<Step, About>> = {
  accept: {
    isDone: ({ accepted }) => accepted !== null,
    becomes: "accepted",
    effect: ({ to }) => `Cell ${to} gets the names when the transfer is cut.`,
    undo: abortLine,
  },
  cut: {
    isDone: ({ state }) => state === "CUT" || state === "FINISHED",
    becomes: "cut",
    effect: ({ from, to, expected }) =>
      `${expected.from?.count ?? "The"} names belong to cell ${to} at once. ` +
      `Cell ${from} must write no row of them any more.`,
    undo: ({ id }) => `${commandLine("transfers", "switch-back", id)} --reason TEXT`,
  },
  abort: {
    isDone: ({ state }) => state === "ABORTED",
    becomes: "aborted",
    effect: ({ from, to, is_rebuilt: isRebuilt }) =>
      isRebuilt
        ? "The ledger has lost what happened to this transfer. If it was cut before, names belong to cell " +
          `${to}, and an abort does not give them back. Look which cell has each name.`
        : `Cell ${from} keeps the names, and may change them again.`,
    undo: () => null,
  },
};

/** Takes a step of a prepared transfer. A step that was taken before changes nothing. */
export async function stepOfTransfer(
  context: Context,
  step: Step,
  id: string,
  options: ChangeOptions,
): Promise<Result> {
  const reason = reasonOf(options);
  const { isDone, becomes, effect, undo } = steps[step];
  const { transfers } = await context.client();
  const before = await transfers.get(id);
  if (isDone(before))
    return {
      document: { transfer: before, changed: false, dry_run: options.dryRun === true },
      text: () => `Transfer ${id} was ${becomes} already. Nothing was changed.`,
      nextSteps: nextOf(before),
    };
  refuseUnready(step, before);
  if (options.dryRun === true)
    return {
      document: { transfer: before, changed: false, dry_run: true },
      text: (style) => `${transferText(before, style)}\n\nIt would be ${becomes}. ${effect(before)}`,
      notes: ["Nothing was changed."],
    };
  await confirm(context, options, {
    name: id,
    effect: `The transfer of ${movedText(before)} will be ${becomes}, because: ${reason}\n${effect(before)}`,
  });
  const transfer = await transfers[step](id, { reason });
  const line = undo(transfer);
  return {
    document: { transfer, changed: true, dry_run: false, undo: line },
    text: () => `Transfer ${id} is ${becomes}. ${effect(transfer)}`,
    notes: [line === null ? "There is no undo: prepare another transfer." : `To undo it: ${line}`],
    nextSteps: nextOf(transfer),
  };
}

/** @throws if the step would be refused, before anything is asked or sent */
function refuseUnready(step: Step, transfer: Transfer): void {
  const { id, state, missing, is_rebuilt: isRebuilt } = transfer;
  if (state !== "PREPARED")
    throw new CommandError(
      `transfer ${id} is ${state}, which is final`,
      exitCodes.conflict,
      nextOf(transfer),
    );
  if (step === "cut" && missing.length > 0 && !isRebuilt)
    throw new CommandError(
      `transfer ${id} can't be cut: ${missing.join("; ")}. Nothing was changed`,
      exitCodes.conflict,
      nextOf(transfer),
    );
}
