import type { Cell } from "../../users/client/index.ts";
import type { Context } from "../framework/context.ts";
import type { Result } from "../output/result.ts";
import { cellLimitsOf, cellStatusOf, keyedCellsOf, type CellLimits } from "../../common/status/observed.ts";
import { cellReasons } from "../../common/status/reasons.ts";
import { commandLine } from "../../common/text/shell-word.ts";
import { fields } from "../output/table.ts";
import { allKeys } from "../status/all-keys.ts";
import { reportFields } from "../verify/report-fields.ts";
import { findCell } from "./find-cell.ts";

/** Stale leases are left out: they are in D1, and a cell is shown without it. */
export async function showCell(context: Context, id: string): Promise<Result> {
  const client = await context.client();
  const cell = await findCell(client, id);
  const [limits, keys] = await Promise.all([client.limits().then(cellLimitsOf), allKeys(client)]);
  const keyed = keys && keyedCellsOf(keys, context.io.now());
  const status = cellStatusOf(cell, [], keyed);
  const show = commandLine("cells", "show", id);
  const reasons = (cell.state === "REMOVED" ? [] : cellReasons(status, limits)).map(({ problem, next }) => ({
    problem,
    ...(next !== undefined && next !== show && { next }),
  }));
  return {
    document: { cell, limits, has_valid_key: status.has_valid_key, reasons },
    text: () => [cellText(cell, limits), fields(reportFields(cell.status))].join("\n\n"),
    notes: reasons.map(({ problem }) => problem),
    nextSteps: [
      ...new Set([
        ...reasons.flatMap(({ next }) => next ?? []),
        ...((cell.outstanding_leases ?? 0) > 0 ? [commandLine("leases", "ls", "--cell", id)] : []),
        commandLine("claims", "ls", "--cell", id),
      ]),
    ],
  };
}

export const cellText = (cell: Cell, limits: CellLimits | null = null): string =>
  fields([
    ["cell", cell.cell_id],
    ["name", cell.name],
    ["state", cell.state ?? "its ledger can't be reached"],
    ["removed", cell.removed_at],
    ["address", cell.address],
    ["location hint", cell.location_hint],
    ["open leases", useText(cell.outstanding_leases, limits?.outstanding_leases)],
    ["unapplied", cell.unapplied_decisions],
    ["bytes", useText(cell.stored_bytes, limits?.ledger_bytes)],
    ["created", cell.created_at],
    ["changed", cell.updated_at],
  ]);

/** Such as `9 of 10 (90 %)`. */
function useText(value: number | null, limit: number | undefined): string | number | null {
  if (value === null || limit === undefined || limit === 0) return value;
  return `${value} of ${limit} (${Math.floor((100 * value) / limit)} %)`;
}
