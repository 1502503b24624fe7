import type { CellStatus } from "../../client/index.ts";
import type { Context } from "../framework/context.ts";
import { durationText } from "../../text/duration.ts";
import type { Result } from "../output/result.ts";
import { fields } from "../output/table.ts";
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

function reportText({ age_ms: ageMs, sdk, verification, reconciliation }: CellStatus): string {
  const parts = [
    fields([
      ["reported", `${durationText(ageMs)} ago`],
      ["sdk", `${sdk.name} ${sdk.version}`],
      ["reconciliation", reconciliation && runText(reconciliation.outcome, reconciliation.ended_ago_ms)],
      ["stale leases", reconciliation?.stale_leases],
      ["unreleased", reconciliation?.unreleased_deletions],
      ["verification", verification && runText(verification.status, verification.ended_ago_ms)],
      ["last done", verification?.last_done_at],
      ["repairs", repairsText(verification?.is_applied)],
      ["approval", verification?.approval_reason],
    ]),
  ];
  const counts = Object.entries(verification?.counts ?? {}).filter(([, count]) => count !== undefined);
  if (counts.length > 0)
    parts.push(fields(counts.map(([name, count]) => [name.replaceAll("_", " "), count])));
  return parts.join("\n\n");
}

const runText = (end: string, agoMs: number): string => `${end}, ended ${durationText(agoMs)} ago`;

function repairsText(isApplied: boolean | undefined): string | undefined {
  if (isApplied === undefined) return undefined;
  return isApplied ? "yes" : "no, it was a dry run";
}
