import type { Cell } from "../../client/index.ts";
import type { Context } from "../framework/context.ts";
import type { Result } from "../output/result.ts";
import { commandLine } from "../../text/shell-word.ts";
import { fields } from "../output/table.ts";
import { findCell } from "./find-cell.ts";

export async function showCell(context: Context, id: string): Promise<Result> {
  const cell = await findCell(await context.client(), id);
  return {
    document: { cell },
    text: () => cellText(cell),
    nextSteps: [
      ...((cell.outstanding_leases ?? 0) > 0 ? [commandLine("leases", "ls", "--cell", id)] : []),
      ...(cell.state === "FROZEN" ? [`${commandLine("cells", "thaw", id)} --reason TEXT`] : []),
      ...(cell.state === "DRAINING" ? [`${commandLine("cells", "undrain", id)} --reason TEXT`] : []),
      commandLine("claims", "ls", "--cell", id),
    ],
  };
}

export const cellText = (cell: Cell): string =>
  fields([
    ["cell", cell.cell_id],
    ["name", cell.name],
    ["state", cell.state ?? "its ledger can't be reached"],
    ["removed", cell.removed_at],
    ["address", cell.address],
    ["location hint", cell.location_hint],
    ["open leases", cell.outstanding_leases],
    ["unapplied", cell.unapplied_decisions],
    ["bytes", cell.stored_bytes],
    ["created", cell.created_at],
    ["changed", cell.updated_at],
  ]);
