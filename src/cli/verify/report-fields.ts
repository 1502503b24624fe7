import type { CellStatus } from "../../users/client/index.ts";
import { driftOf, driftText } from "../../common/status/health.ts";
import { durationText } from "../../common/text/duration.ts";
import type { fields } from "../output/table.ts";

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
