import { CommandError, usageError } from "../framework/command-error.ts";
import type { Context } from "../framework/context.ts";
import { exitCodes } from "../framework/exit-codes.ts";
import type { Result } from "../output/result.ts";
import { commandLine } from "../../common/text/shell-word.ts";
import { confirm, reasonOf, type ChangeOptions } from "../safety/confirm.ts";
import { escapeControls } from "../../common/text/escape.ts";
import { findCell } from "./find-cell.ts";

interface SetOptions extends ChangeOptions {
  name?: string;
  address?: string;
}

export async function setCell(context: Context, id: string, options: SetOptions): Promise<Result> {
  const { name, address, dryRun } = options;
  if (name === undefined && address === undefined) throw usageError("give --name, --address, or both");
  const reason = reasonOf(options);
  const client = await context.client();
  const before = await findCell(client, id);
  if (before.removed_at !== null)
    throw new CommandError(
      `cell ${id} was removed at ${before.removed_at}: nothing was changed`,
      exitCodes.conflict,
    );
  const changes = [
    ...(name === undefined || name === before.name ? [] : [`name ${before.name} -> ${name}`]),
    ...(address === undefined || address === before.address
      ? []
      : [`address ${before.address} -> ${address}`]),
  ].map(escapeControls);
  if (changes.length === 0)
    return {
      document: { cell: before, changed: false, dry_run: dryRun === true },
      text: () => `Cell ${id} has these values already. Nothing was changed.`,
    };
  const summary = changes.join(", ");
  if (dryRun === true)
    return {
      document: { cell: before, changes, changed: false, dry_run: true },
      text: () => `Would change cell ${id}: ${summary}`,
      notes: ["Nothing was changed."],
    };
  const effect = `This changes cell ${id}: ${summary}, because: ${reason}`;
  await confirm(context, options, { name: id, effect });
  const cell = await client.cells.change(id, { name, address, reason });
  const undo = `${commandLine("cells", "set", id, ...undoOf(options, before))} --reason TEXT`;
  return {
    document: { cell, changes, changed: true, dry_run: false, undo },
    text: () => `Changed cell ${id}: ${summary}`,
    notes: [`To undo it: ${undo}`],
  };
}

const undoOf = (
  { name, address }: SetOptions,
  before: { name: string; address: string },
): (string | undefined)[] => [
  ...(name === undefined ? [] : ["--name", before.name]),
  ...(address === undefined ? [] : ["--address", before.address]),
];
