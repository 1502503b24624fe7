import type { Page } from "../layout.ts";
import { html, countText, type Markup, type Part } from "../markup.ts";
import {
  samplesIn,
  agoOf,
  allCells,
  NO_CELLS,
  cellLink,
  factsOf,
  failedPage,
  type View,
  type Cell,
} from "../view.ts";
import { tableOf } from "../table.ts";
import {
  driftOf,
  driftKinds,
  driftText,
  hasDrift,
  isSilent,
  type Drift,
} from "../../../common/status/health.ts";
import { durationText } from "../../../common/text/duration.ts";
import { barsOf } from "../bars.ts";

/** What the last verification of each cell found, as the cells reported it. */
export async function verificationPage({ api, nowMs }: View): Promise<Page> {
  const [cells, metrics] = await Promise.all([allCells(api), api.call("getMetrics")]);
  if (!cells.ok) return failedPage("Verification", cells.problem);
  const samples = metrics.ok ? samplesIn(metrics.value) : undefined;
  const taken = samples?.get("leasehold_verification_slots_taken");
  const waiting = samples?.get("leasehold_verification_waiting");
  const holders = cells.value.flatMap(({ cell_id: id }) => {
    const heldS = samples?.get(`leasehold_verification_slot_held_seconds{cell="${id}"}`);
    return heldS === undefined ? [] : [html`cell ${cellLink(id)} for ${durationText(heldS * 1_000)} `];
  });
  return {
    title: "Verification",
    main: html`${factsOf([
        ["Slots taken", taken],
        ["Held by", holders.length === 0 ? undefined : html`${holders}`],
        ["Cells that wait", waiting],
      ])}
      ${driftBars(
        "Drift by kind, in all cells",
        cells.value.map(({ status }) => driftOf(status)),
      )}
      ${tableOf(
        "Last verification of each cell",
        cells.value,
        [
          { title: "Cell", value: ({ cell_id: id }) => cellLink(id) },
          { title: "Name", value: ({ name }) => name },
          { title: "Ended", value: ({ status }) => verificationOf(status) },
          { title: "Drift", value: ({ status }) => driftIn(status) },
          { title: "Rows", value: ({ status }) => status?.verification?.counts?.rows, isNumber: true },
          {
            title: "Last done",
            value: ({ status }) => agoOf(status?.verification?.last_done_at ?? null, nowMs),
          },
        ],
        NO_CELLS,
      )}
      <p class="soft">
        Each cell verifies itself and reports what it found. Run
        <code>leasehold verify report --cell ID</code> for all counts. Slots limit how many cells verify at
        the same time.
      </p>`,
  };
}

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
function verificationOf(status: Cell["status"]): Part {
  const run = status?.verification;
  if (run === undefined) return null;
  return html`<span class="${run.status === "done" ? "good" : "warn"}"
      >${run.status.replaceAll("_", " ")}</span
    >, ended ${ago(run.ended_ago_ms)}${run.is_applied === false ? ", a dry run" : ""}`;
}

const driftIn = (status: Cell["status"]): Part => {
  const drift = driftOf(status);
  if (drift === null) return null;
  if (!hasDrift(drift)) return html`<span class="good">none</span>`;
  return html`<span class="bad">${driftText(drift)}</span>`;
};

/** Bars by kind, of one cell or of several. Undefined: there is no drift. */
function driftBars(label: string, drifts: readonly (Drift | null)[]): Markup | undefined {
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
