import type * as z from "zod";
import type { Transfer, TransferReport, TransferStep } from "../messages.ts";
import type { TransferSide } from "../range.ts";
import { timeOf } from "../../../api/answers.ts";
import type { transferRoutes } from "./routes.ts";

type ApiTransfer = z.input<(typeof transferRoutes)["getTransfer"]["responses"][200]["schema"]>["transfer"];

/** @param reader the cell that gets the answer. Null: an operator or a viewer, who gets all of it (Y7). */
export function toApiTransfer(
  { id, from, to, scope, state, ...transfer }: Transfer,
  reader: string | null,
): ApiTransfer {
  const isFor = (side: TransferSide): boolean => reader === null || reader === { from, to }[side];
  const toApiStep = ({ atMs, ageMs, by, keyId, reason }: TransferStep): ApiTransfer["prepared"] => ({
    at: timeOf(atMs),
    age_ms: ageMs,
    by,
    key_id: reader === null || (by !== "operator" && isFor(by)) ? keyId : null,
    reason,
  });
  const expectedOf = (side: TransferSide) => (isFor(side) ? transfer.expected[side] : null);
  const reportOf = (side: TransferSide, report: TransferReport | null): ApiTransfer["reports"]["from"] => {
    if (report === null) return null;
    const rows = isFor(side) ? { count: report.count, hash: report.hash } : { count: null, hash: null };
    return { ...rows, is_equal: report.isEqual, ...toApiStep(report) };
  };
  return {
    id: `${to}-${id}`,
    uuid: id,
    from,
    to,
    scope,
    state,
    prepared: toApiStep(transfer.prepared),
    accepted: transfer.accepted && toApiStep(transfer.accepted),
    decided: transfer.decided && toApiStep(transfer.decided),
    // The source of a switch-back is the destination of the transfer that it undoes.
    switch_back_of: transfer.switchBackOf && `${from}-${transfer.switchBackOf}`,
    is_rebuilt: transfer.isRebuilt,
    expected: { from: expectedOf("from"), to: expectedOf("to") },
    reports: { from: reportOf("from", transfer.reports.from), to: reportOf("to", transfer.reports.to) },
    missing: transfer.missing,
    unfinished_shards: transfer.unfinishedShards,
  };
}
