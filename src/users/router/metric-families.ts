/** Families of metrics in the text format of Prometheus. */

/** Upper bounds of the buckets, in milliseconds. */
const AGE_BUCKETS_MS = [0, 100, 500, 1_000, 2_000, 5_000, 15_000, 60_000, 300_000, 600_000];
/** Rules and layers are few. More label sets than this are counted together, as `other`. */
const MAX_SERIES = 1_000;

type Labels = Readonly<Record<string, string>>;

/** The events of one set of labels. */
interface Series {
  readonly labels: Labels;
  count: number;
}

/** Counts events by their labels, which always have the same names. */
export class Counter {
  readonly #series = new Map<string, Series>();

  add(labels: Labels, by = 1): void {
    // Every request counts something, so the text of the labels is only made when it is read.
    const values = Object.values(labels).join("\n");
    const series = this.#series.get(values) ?? this.#newSeries(labels, values);
    series.count += by;
  }

  lines(name: string, help: string): string[] {
    const lines = Array.from(
      this.#series.values(),
      ({ labels, count }) => `${name}_total${labelText(labels)} ${count}`,
    );
    return [`# HELP ${name}_total ${help}`, `# TYPE ${name}_total counter`, ...lines];
  }

  #newSeries(given: Labels, values: string): Series {
    const isRoom = this.#series.size < MAX_SERIES;
    const labels = isRoom ? given : Object.fromEntries(Object.keys(given).map((name) => [name, "other"]));
    const key = isRoom ? values : "other";
    const series = this.#series.get(key) ?? { labels, count: 0 };
    this.#series.set(key, series);
    return series;
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
      `# HELP ${name} ${help}`,
      `# TYPE ${name} histogram`,
      ...buckets,
      `${name}_bucket{le="+Inf"} ${this.#count}`,
      `${name}_sum ${this.#sum}`,
      `${name}_count ${this.#count}`,
    ];
  }
}

function labelText(labels: Labels): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escaped(value)}"`);
  return pairs.length === 0 ? "" : `{${pairs.join(",")}}`;
}

const escaped = (value: string): string =>
  value.slice(0, 200).replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
