import { barsOf } from "./bars.ts";
import { html, type Markup } from "./markup.ts";
import type { Samples } from "./samples.ts";

/** The buckets of the family `leasehold_lease_age_seconds`, by their upper ends. */
const BUCKETS = [
  ["under 1 s", 1],
  ["1 to 10 s", 10],
  ["10 s to 1 min", 60],
  ["1 to 10 min", 600],
  ["10 min to 1 h", 3_600],
  ["1 h to 1 day", 86_400],
  ["older", Infinity],
] as const;

const LINE = /^leasehold_lease_age_seconds_bucket\{(?<labels>.*)\}$/;

/**
 * The ages of the open leases as a histogram.
 *
 * @param cell only the leases of this cell
 */
export function leaseAgesOf(samples: Samples, cell: string): Markup | undefined {
  const upTo = BUCKETS.map(() => 0);
  for (const [name, count] of samples) {
    const labels = LINE.exec(name)?.groups?.["labels"];
    if (labels === undefined) continue;
    const of = (label: string): string | undefined => new RegExp(`${label}="([^"]*)"`).exec(labels)?.[1];
    if (cell !== "" && of("cell") !== cell) continue;
    const end = of("le") === "+Inf" ? Infinity : Number(of("le"));
    const at = BUCKETS.findIndex(([, seconds]) => seconds === end);
    upTo[at] = (upTo[at] ?? 0) + count;
  }
  if (upTo.at(-1) === 0) return undefined;
  const bars = BUCKETS.map(([name], at) => ({ name, value: (upTo[at] ?? 0) - (upTo[at - 1] ?? 0) }));
  return html`${barsOf("Ages of the open leases, of the oldest 1,000 of each cell", bars)}`;
}
