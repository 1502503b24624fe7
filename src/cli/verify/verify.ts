import type { Context } from "../framework/context.ts";
import { durationText } from "../../common/text/duration.ts";
import { listResult, take, type Result } from "../output/result.ts";
import { commandLine } from "../../common/text/shell-word.ts";
import { driftOf, driftText, type Drift } from "../../common/status/health.ts";
import { exitCodeOf, sentenceOf, verifiedCell, type VerifiedCell } from "./verified-cell.ts";
import type { CellStatus } from "../../users/client/index.ts";
import { fields } from "../output/table.ts";

/** A deployment has at most 1,000 cells. The exit code must not depend on a part of them. */
const MAX_CELLS = 1_000;

export async function verifyStatus(context: Context): Promise<Result> {
  const client = await context.client();
  const { items, isCut } = await take(client.cells.list(), MAX_CELLS);
  const cells = items
    .filter(({ state }) => state !== "REMOVED")
    .map(({ cell_id: id, status, state }) => verifiedCell(id, status, state !== null));
  return listResult<VerifiedCell>({
    name: "cells",
    items: cells,
    isCut,
    columns: [
      { title: "CELL", value: ({ cell }) => cell },
      { title: "VERIFIED", value: ({ verified_ago_ms: ms }) => ago(ms), isNumber: true },
      { title: "STATUS", value: ({ status }) => status },
      kind("missing"),
      kind("different"),
      kind("extra"),
      kind("duplicates"),
      kind("unnameable"),
      { title: "REPORTED", value: ({ reported_age_ms: ms }) => ago(ms), isNumber: true },
    ],
    empty: "There are no cells.",
    notes: cells.flatMap((cell) => sentenceOf(cell) ?? []),
    nextSteps: cells
      .filter(({ outcome }) => outcome === "drift")
      .map(({ cell }) => commandLine("verify", "report", "--cell", cell)),
    exitCode: exitCodeOf(cells),
  });
}

const ago = (ms: number | null): string | null => (ms === null ? null : `${durationText(ms)} ago`);

const kind = (name: keyof Drift) => ({
  title: name.toUpperCase(),
  value: ({ drift }: VerifiedCell) => drift?.[name],
  isNumber: true,
});

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

/** What a cell reported last, without its counts. Null: it has never reported. */
export function reportFields(status: CellStatus | null): Parameters<typeof fields>[0] {
  if (status === null) return [["reported", "never"]];
  const { age_ms: ageMs, sdk, reconciliation, verification } = status;
  const drift = driftOf(status);
  return [
    ["reported", `${durationText(ageMs)} ago`],
    ["sdk", `${sdk.name} ${sdk.version}`],
    ["reconciliation", reconciliation && runText(reconciliation.outcome, reconciliation.ended_ago_ms)],
    ["stale leases", reconciliation?.stale_leases],
    ["unreleased", reconciliation?.unreleased_deletions],
    ["verification", verification && runText(verification.status, verification.ended_ago_ms)],
    ["last done", verification?.last_done_at],
    ["repairs", repairsText(verification?.is_applied)],
    ["approval", verification?.approval_reason],
    ["drift", drift === null ? null : driftText(drift) || "none"],
  ];
}

const runText = (end: string, agoMs: number): string => `${end}, ended ${durationText(agoMs)} ago`;

function repairsText(isApplied: boolean | undefined): string | undefined {
  if (isApplied === undefined) return undefined;
  return isApplied ? "yes" : "no, it was a dry run";
}
