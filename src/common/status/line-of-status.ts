import { countOf } from "../text/count-of.ts";
import { durationText } from "../text/duration.ts";

/** What a cell said of itself last, as far as the line has it. */
export interface Reported {
  age_ms: number;
  sdk: { name: string; version: string };
  reconciliation?: { outcome: string; ended_ago_ms: number; stale_leases?: number | undefined } | undefined;
}

/** Says in one line what a cell reported last, for somebody who is about to decide its lease. */
export function lineOfStatus(status: Reported | null): string {
  if (status === null) return "The cell has never reported its status, so it may or may not be alive.";
  const { age_ms: ageMs, sdk, reconciliation } = status;
  const run =
    reconciliation === undefined
      ? "no reconciliation"
      : `a reconciliation: ${reconciliation.outcome} ${durationText(reconciliation.ended_ago_ms)} ago` +
        staleText(reconciliation.stale_leases);
  return `The cell reported ${durationText(ageMs)} ago (${sdk.name} ${sdk.version}), with ${run}.`;
}

const staleText = (stale: number | undefined): string =>
  stale === undefined ? "" : `, ${countOf(stale, "stale lease")} left`;
