/** Families of metrics in the text format of OpenMetrics. */

/** Upper bounds of the buckets, in milliseconds. */
const AGE_BUCKETS_MS = [0, 100, 500, 1_000, 2_000, 5_000, 15_000, 60_000, 300_000, 600_000];
/** Rules and layers are few. More label sets than this are counted together, as `other`. */
const MAX_SERIES = 1_000;

/** Counts events by their labels. */
export class Counter {
  readonly #counts = new Map<string, number>();

  add(labels: Readonly<Record<string, string>>, by = 1): void {
    const wanted = labelText(labels);
    const isRoom = this.#counts.has(wanted) || this.#counts.size < MAX_SERIES;
    const text = isRoom
      ? wanted
      : labelText(Object.fromEntries(Object.keys(labels).map((l) => [l, "other"])));
    this.#counts.set(text, (this.#counts.get(text) ?? 0) + by);
  }

  lines(name: string, help: string): string[] {
    const lines = [...this.#counts].map(([labels, count]) => `${name}_total${labels} ${count}`);
    return [`# TYPE ${name} counter`, `# HELP ${name} ${help}`, ...lines];
  }
}

/** Counts ages in buckets. */
export class AgeHistogram {
  readonly #counts = AGE_BUCKETS_MS.map(() => 0);
  #count = 0;
  #sum = 0;

  add(value: number): void {
    const at = AGE_BUCKETS_MS.findIndex((bound) => value <= bound);
    if (at >= 0) this.#counts[at] = (this.#counts[at] ?? 0) + 1;
    this.#count += 1;
    this.#sum += value;
  }

  lines(name: string, help: string): string[] {
    let below = 0;
    const buckets = AGE_BUCKETS_MS.map((bound, at) => {
      below += this.#counts[at] ?? 0;
      return `${name}_bucket{le="${bound}"} ${below}`;
    });
    return [
      `# TYPE ${name} histogram`,
      `# HELP ${name} ${help}`,
      ...buckets,
      `${name}_bucket{le="+Inf"} ${this.#count}`,
      `${name}_sum ${this.#sum}`,
      `${name}_count ${this.#count}`,
    ];
  }
}

function labelText(labels: Readonly<Record<string, string>>): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escaped(value)}"`);
  return pairs.length === 0 ? "" : `{${pairs.join(",")}}`;
}

const escaped = (value: string): string =>
  value.slice(0, 200).replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
