import type { Cell } from "../../users/client/index.ts";
import { CommandError, exitCodes } from "../framework/command-error.ts";
import type { Context } from "../framework/context.ts";
import type { Result } from "../output/result.ts";
import { commandLine } from "../../common/text/shell-word.ts";
import { confirm, reasonOf, type ChangeOptions } from "../safety/confirm.ts";
import { findCell } from "./cells.ts";

type State = NonNullable<Cell["state"]>;

interface Change {
  wanted: State;
  /** The states from which it may change. */
  from: readonly State[];
  call: "freeze" | "drain" | "unfreeze";
  effect: string;
  done: string;
  undo: string;
}

const freeze: Change = {
  wanted: "FROZEN",
  from: ["ACTIVE", "DRAINING"],
  call: "freeze",
  effect: "Its begins will be refused. Its commits, rollbacks and reads still work.",
  done: "is frozen: its begins are refused",
  undo: "thaw",
};

const thaw: Change = {
  wanted: "ACTIVE",
  from: ["FROZEN"],
  call: "unfreeze",
  effect: "It may begin leases again.",
  done: "is active: it may begin leases",
  undo: "freeze",
};

const drain: Change = {
  wanted: "DRAINING",
  from: ["ACTIVE", "FROZEN"],
  call: "drain",
  effect:
    "Its begins will be refused, except those of a verification. Its commits, rollbacks, reads and exports " +
    "still work.",
  done: "is draining: only its verification may begin leases",
  undo: "undrain",
};

const undrain: Change = { ...thaw, from: ["DRAINING"], undo: "drain" };

/** The command that makes a cell active again. */
const ends: Partial<Record<State, string>> = { FROZEN: "thaw", DRAINING: "undrain" };

export const freezeCell = (context: Context, id: string, options: ChangeOptions): Promise<Result> =>
  change(context, id, options, freeze);

export const thawCell = (context: Context, id: string, options: ChangeOptions): Promise<Result> =>
  change(context, id, options, thaw);

export const drainCell = (context: Context, id: string, options: ChangeOptions): Promise<Result> =>
  change(context, id, options, drain);

export const undrainCell = (context: Context, id: string, options: ChangeOptions): Promise<Result> =>
  change(context, id, options, undrain);

async function change(context: Context, id: string, options: ChangeOptions, to: Change): Promise<Result> {
  const reason = reasonOf(options);
  const client = await context.client();
  const before = await findCell(client, id);
  if (before.state === to.wanted)
    return {
      document: { cell: before, changed: false, dry_run: options.dryRun === true },
      text: () => `Cell ${id} ${to.done} already. Nothing was changed.`,
    };
  if (before.state !== null && !to.from.includes(before.state)) {
    const command = ends[before.state];
    throw new CommandError(
      `cell ${id} is ${before.state}, not ${to.from.join(" or ")}: nothing was changed`,
      exitCodes.conflict,
      command === undefined ? [] : [`${commandLine("cells", command, id)} --reason TEXT`],
    );
  }
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
