import type * as z from "zod";
import type { Transfer, TransferReport, TransferStep } from "../core/transfer/messages.ts";
import { timeOf } from "./answers.ts";
import type { transferRoutes } from "./contract/transfer-routes.ts";

type ApiTransfer = z.input<(typeof transferRoutes)["getTransfer"]["responses"][200]["schema"]>["transfer"];

export const toApiTransfer = ({ id, from, to, scope, state, ...transfer }: Transfer): ApiTransfer => ({
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
  expected: transfer.expected,
  reports: { from: toApiReport(transfer.reports.from), to: toApiReport(transfer.reports.to) },
  missing: transfer.missing,
  unfinished_shards: transfer.unfinishedShards,
});

const toApiStep = ({ atMs, ageMs, by, keyId, reason }: TransferStep): ApiTransfer["prepared"] => ({
  at: timeOf(atMs),
  age_ms: ageMs,
  by,
  key_id: keyId,
  reason,
});

const toApiReport = (report: TransferReport | null): ApiTransfer["reports"]["from"] =>
  report && { count: report.count, hash: report.hash, is_equal: report.isEqual, ...toApiStep(report) };
