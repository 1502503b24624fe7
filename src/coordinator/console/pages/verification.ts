import type { Page } from "../layout.ts";
import { html } from "../markup.ts";
import { driftBars, driftIn, verificationOf } from "../reported.ts";
import { samplesIn } from "../samples.ts";
import { tableOf } from "../table.ts";
import { agoOf, allCells, NO_CELLS, cellLink, factsOf, failedPage, type View } from "../view.ts";
import { driftOf } from "../../../common/status/health.ts";
import { durationText } from "../../../common/text/duration.ts";

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
