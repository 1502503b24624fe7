import { countText } from "./amounts.ts";
import { barsOf } from "./bars.ts";
import { problemNote } from "./layout.ts";
import { html, type Markup } from "./markup.ts";
import type { View } from "./view.ts";

/** The most pairs of a type of names and a type of sources that are counted for one page. */
const MAX_PAIRS = 64;

/**
 * Counts the claims of a cell by type. The shards read every claim for it, like a verification does, so it is
 * done only when somebody asks.
 */
export async function claimsOf({ api, input }: View, cell: string): Promise<Markup> {
  if (input.get("count") !== "1")
    return html`<form class="panel" action="/console/cells/${cell}">
      <input type="hidden" name="count" value="1" />
      <p class="soft">To count the claims by type, the shards read all of them, like for a verification.</p>
      <button>Count the claims</button>
    </form>`;
  const declared = await api.call("getTypes");
  if (!declared.ok) return problemNote(declared.problem);
  const { bucket_types: types, source_types: sources } = declared.value.in_use;
  if (types.length * sources.length > MAX_PAIRS)
    return html`<p class="panel empty">
      Too many types are in use to count them here. Export the records of the cell instead.
    </p>`;
  const bars = [];
  let isSure = true;
  for (const type of types) {
    let value = 0;
    for (const source of sources) {
      // One after the other, because a cell may have only so many reads at a time.
      const answer = await api.call("digestRecords", {
        params: { cell },
        body: { source_type: source, bucket_types: [type], ranges: [{}] },
      });
      if (!answer.ok) return problemNote(answer.problem);
      for (const { count, held } of answer.value.digests) {
        value += count;
        isSure &&= !held;
      }
    }
    bars.push({ name: type, value });
  }
  const sum = countText(bars.reduce((all, { value }) => all + value, 0));
  return html`${barsOf(`Claims by type, ${isSure ? "" : "at least "}${sum} in all`, bars)}
  ${
    isSure
      ? undefined
      : html`<p class="soft">Leases were open or decided meanwhile, so the numbers may be too small.</p>`
  }`;
}
