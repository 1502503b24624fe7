import type { Context } from "../framework/context.ts";
import type { Result } from "../output/result.ts";
import { confirm, reasonOf, type ChangeOptions } from "../safety/confirm.ts";
import { findCell } from "./find-cell.ts";

interface Change {
  wanted: "FROZEN" | "ACTIVE";
  call: "freeze" | "unfreeze";
  effect: string;
  done: string;
  undo: string;
}

const freeze: Change = {
  wanted: "FROZEN",
  call: "freeze",
  effect: "Its begins will be refused. Its commits, rollbacks and reads still work.",
  done: "is frozen: its begins are refused",
  undo: "thaw",
};

const thaw: Change = {
  wanted: "ACTIVE",
  call: "unfreeze",
  effect: "It may begin leases again.",
  done: "is active: it may begin leases",
  undo: "freeze",
};

export const freezeCell = (context: Context, id: string, options: ChangeOptions): Promise<Result> =>
  change(context, id, options, freeze);

export const thawCell = (context: Context, id: string, options: ChangeOptions): Promise<Result> =>
  change(context, id, options, thaw);

async function change(context: Context, id: string, options: ChangeOptions, to: Change): Promise<Result> {
  const reason = reasonOf(options);
  const client = await context.client();
  const before = await findCell(client, id);
  if (before.state === to.wanted)
    return {
      document: { cell: before, changed: false, dry_run: options.dryRun === true },
      text: () => `Cell ${id} ${to.done} already. Nothing was changed.`,
    };
  if (options.dryRun === true)
    return {
      document: { cell: before, would_be: to.wanted, changed: false, dry_run: true },
      text: () => `Cell ${id} would be ${to.wanted}. ${to.effect}`,
      notes: ["Nothing was changed."],
    };
  await confirm(context, options, {
    name: id,
    effect: `This makes cell ${id} ${to.wanted}, because: ${reason}\n${to.effect}`,
  });
  const cell = await client.cells[to.call](id, { reason });
  const undo = `leasehold cells ${to.undo} ${id} --reason TEXT`;
  return {
    document: { cell, changed: true, dry_run: false, undo },
    text: () => `Cell ${id} ${to.done}.`,
    notes: [`To undo it: ${undo}`],
  };
}
