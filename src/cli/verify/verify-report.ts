import type { CellStatus } from "../../users/client/index.ts";
import type { Context } from "../framework/context.ts";
import type { Result } from "../output/result.ts";
import { fields } from "../output/table.ts";
import { reportFields } from "./report-fields.ts";
import { exitCodeOf, sentenceOf, verifiedCell } from "./verified-cell.ts";

export async function verifyReport(context: Context, { cell }: { cell: string }): Promise<Result> {
  const status = await (await context.client()).forCell(cell).cells.status();
  const verified = verifiedCell(cell, status, true);
  const sentence = sentenceOf(verified);
  return {
    document: { ...verified, report: status },
    text: () => (status === null ? "" : reportText(status)),
    notes: sentence === undefined ? [] : [sentence],
    exitCode: exitCodeOf([verified]),
  };
}

function reportText(status: CellStatus): string {
  const parts = [fields(reportFields(status))];
  const counts = Object.entries(status.verification?.counts ?? {}).filter(([, count]) => count !== undefined);
  if (counts.length > 0)
    parts.push(fields(counts.map(([name, count]) => [name.replaceAll("_", " "), count])));
  return parts.join("\n\n");
}
