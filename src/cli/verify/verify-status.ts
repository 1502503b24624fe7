import type { Context } from "../framework/context.ts";
import { durationText } from "../../common/text/duration.ts";
import { listResult, take, type Result } from "../output/result.ts";
import { commandLine } from "../../common/text/shell-word.ts";
import type { Drift } from "../../common/status/health.ts";
import { exitCodeOf, sentenceOf, verifiedCell, type VerifiedCell } from "./verified-cell.ts";

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
