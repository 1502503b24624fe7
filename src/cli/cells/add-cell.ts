import type { NewCell } from "../../users/client/index.ts";
import type { Context } from "../framework/context.ts";
import type { Result } from "../output/result.ts";
import { commandLine } from "../../common/text/shell-word.ts";
import { cellText } from "./cells.ts";

interface AddOptions {
  name: string;
  address: string;
  locationHint?: NonNullable<NewCell["location_hint"]>;
  reason?: string;
  dryRun?: boolean;
}

export async function addCell(context: Context, id: string, options: AddOptions): Promise<Result> {
  const { name, address, locationHint, reason, dryRun } = options;
  const wanted = { cell_id: id, name, address, location_hint: locationHint, reason };
  if (dryRun === true)
    return {
      document: { cell: wanted, changed: false, dry_run: true },
      text: () => `Would register cell ${id} with the address ${address}.`,
      notes: ["Nothing was changed."],
    };
  const cell = await (await context.client()).cells.add(wanted);
  return {
    document: { cell, changed: true, dry_run: false, undo: null },
    text: () => cellText(cell),
    notes: [`Cell ${id} is registered. There is no undo: freeze the cell if it must not begin leases.`],
    nextSteps: [commandLine("keys", "mint", "--role", "cell", "--cell", id, "--note", name)],
  };
}
