import { countText } from "./amounts.ts";
import { barsOf } from "./bars.ts";
import { problemNote } from "./layout.ts";
import { html, type Markup } from "./markup.ts";
import { factsOf, type Cell, type View } from "./view.ts";

/**
 * Counts the claims of a cell by the type of their names. The shards read claims for it, so it is done only
 * when somebody asks, or is about to remove the cell.
 */
export async function claimsByType({ api, input }: View, { cell_id: cell, state }: Cell): Promise<Markup> {
  if (input.get("count") !== "1" && state !== "DRAINING" && state !== "REMOVING")
    return html`<form class="panel" action="/console/cells/${cell}">
      <input type="hidden" name="count" value="1" />
      <p class="soft">The shards read the claims to count them, so they are counted only on request.</p>
      <button>Count the claims</button>
    </form>`;
  const counted = await api.call("getRemoval", { params: { cell }, query: {} });
  if (!counted.ok) return problemNote(counted.problem);
  const { claims, claims_total: total, cursor, progress } = counted.value.removal;
  const counts = new Map<string, number>();
  for (const { bucket_type: type, count } of claims) counts.set(type, (counts.get(type) ?? 0) + count);
  const bars = [...counts].map(([name, value]) => ({ name, value }));
  return html`${
    bars.length === 0
      ? html`<p class="panel empty">The cell has no claims.</p>`
      : barsOf(`Claims by type, ${cursor === null ? "" : "at least "}${countText(total)} in all`, bars)
  }
  ${
    progress === null
      ? undefined
      : factsOf([
          ["Exported for the removal", progress.exported_claims],
          ["Released by it", progress.released_claims],
        ])
  }`;
}
