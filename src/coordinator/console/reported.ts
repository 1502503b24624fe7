import {
  driftKinds,
  driftOf,
  driftText,
  hasDrift,
  isSilent,
  type Drift,
} from "../../common/status/health.ts";
import { durationText } from "../../common/text/duration.ts";
import { countText } from "./amounts.ts";
import { barsOf } from "./bars.ts";
import { html, type Markup, type Part } from "./markup.ts";
import { factsOf, type Cell } from "./view.ts";

type Status = NonNullable<Cell["status"]>;

/** What a cell said of itself last. */
export function reportedOf(status: Cell["status"]): Markup {
  if (status === null)
    return html`<p class="panel empty">
      The cell has never reported its status. A cell with the SDK reports after each reconciliation.
    </p>`;
  const { age_ms: ageMs, sdk, reconciliation, verification } = status;
  return html`${factsOf([
    ["Reported", html`<span class="${isSilent(ageMs) ? "bad" : "good"}">${ago(ageMs)}</span>`],
    ["SDK", `${sdk.name} ${sdk.version}`],
    ["Reconciliation", runOf(reconciliation)],
    ["Leases it processed", countsOf(reconciliation?.counts)],
    ["Stale leases left", reconciliation?.stale_leases],
    ["Unreleased deletions", reconciliation?.unreleased_deletions],
    ["Verification", verificationOf(status)],
    ["Waits for approval", verification?.approval_reason],
    ["Rows and claims", rowsOf(verification?.counts)],
  ])}
  ${driftBars("Drift that the last verification found", [driftOf(status)])}`;
}

const ago = (ms: number): string => `${durationText(ms)} ago`;

const runOf = (run: Status["reconciliation"]): Part =>
  run === undefined
    ? null
    : html`<span class="${run.outcome === "done" ? "good" : "warn"}">${run.outcome}</span>, ended
        ${ago(run.ended_ago_ms)}${run.is_full === true ? ", of all leases" : ""}`;

/** How the last verification ended, when, and whether it repaired. */
export function verificationOf(status: Cell["status"]): Part {
  const run = status?.verification;
  if (run === undefined) return null;
  return html`<span class="${run.status === "done" ? "good" : "warn"}"
      >${run.status.replaceAll("_", " ")}</span
    >, ended ${ago(run.ended_ago_ms)}${run.is_applied === false ? ", a dry run" : ""}`;
}

export const driftIn = (status: Cell["status"]): Part => {
  const drift = driftOf(status);
  if (drift === null) return null;
  if (!hasDrift(drift)) return html`<span class="good">none</span>`;
  return html`<span class="bad">${driftText(drift)}</span>`;
};

/** Bars by kind, of one cell or of several. Undefined: there is no drift. */
export function driftBars(label: string, drifts: readonly (Drift | null)[]): Markup | undefined {
  const bars = driftKinds.map((kind) => ({
    name: kind,
    value: drifts.reduce((sum, drift) => sum + (drift?.[kind] ?? 0), 0),
  }));
  return bars.some(({ value }) => value > 0) ? barsOf(label, bars) : undefined;
}

function countsOf(counts: NonNullable<Status["reconciliation"]>["counts"]): Part {
  const given = Object.entries(counts ?? {}).filter(([, count]) => count !== undefined && count > 0);
  if (given.length === 0) return null;
  return given.map(([name, count = 0]) => `${countText(count)} ${name.replaceAll("_", " ")}`).join(", ");
}

function rowsOf(counts: NonNullable<Status["verification"]>["counts"]): Part {
  if (counts?.rows === undefined || counts.claims === undefined) return null;
  return `${countText(counts.rows)} rows, ${countText(counts.claims)} claims`;
}
