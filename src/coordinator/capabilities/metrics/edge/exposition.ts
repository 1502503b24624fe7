import { AGE_BUCKETS_MS, BUCKETS_MS, type Durations } from "../../../kernel/metrics/histogram.ts";
import type { Limits } from "../../../../common/limits.ts";
import { families } from "../../families.ts";
import type { Family, Sources } from "./family.ts";

/** The media types, to which the server adds the charset. */
export const OPEN_METRICS = "application/openmetrics-text; version=1.0.0";
export const PROMETHEUS_TEXT = "text/plain; version=0.0.4";

/** The units at the ends of names that OpenMetrics wants to be declared. */
const UNITS = ["seconds", "bytes"];

/**
 * The families that the text format of Prometheus has for one of OpenMetrics: the ends of their names, their
 * types, and where it has to be said, the ends of the names of their samples. The samples are the same in
 * both formats.
 */
const prometheusFamilies: Readonly<
  Record<Family["type"], readonly [end: string, type: string, of?: string][]>
> = {
  counter: [["_total", "counter"]],
  gauge: [["", "gauge"]],
  histogram: [["", "histogram"]],
  info: [["_info", "gauge"]],
  gaugehistogram: [
    ["", "histogram", "_bucket"],
    ["_gsum", "gauge", "_gsum"],
    ["_gcount", "gauge", "_gcount"],
  ],
};

/** Collects samples, and writes them family by family. */
export class Exposition {
  readonly #samples = new Map<string, string[]>();

  /** Adds the samples of all families of a source. `own` is the value of the label that they all have. */
  add<Name extends keyof Sources>(name: Name, source: Sources[Name], limits: Limits, own = ""): void {
    for (const [family, { label, read, ...declared }] of Object.entries(families)) {
      if (declared.source !== name) continue;
      const value = read(source as never, limits);
      if (value === null || value === undefined) continue;
      const shared = label === undefined ? {} : { [label]: own };
      const samples = isList(value) ? value : ([[{}, value]] as const);
      for (const [labels, each] of samples) this.addSample(family, declared, { ...shared, ...labels }, each);
    }
  }

  addSample(
    name: string,
    { type, labels: declared }: Pick<Family, "type" | "labels">,
    given: Readonly<Record<string, string>>,
    value: number | Durations,
  ): void {
    const labels = Object.fromEntries(declared.map((label) => [label, given[label] ?? ""]));
    const lines = this.#samples.get(name) ?? [];
    this.#samples.set(name, lines);
    if (typeof value === "number") lines.push(`${sampleName(name, type)}${labelText(labels)} ${value}`);
    else lines.push(...histogramLines(name, type === "gaugehistogram", labels, value));
  }

  openMetrics(): string {
    return `${this.#text((name, family, samples) => [...headOf(name, family), ...samples])}# EOF\n`;
  }

  /** https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format */
  prometheusText(): string {
    return this.#text((name, { type, help }, samples) =>
      prometheusFamilies[type].flatMap(([end, textType, of]) => [
        `# HELP ${name}${end} ${escapedHelp(help)}`,
        `# TYPE ${name}${end} ${textType}`,
        ...(of === undefined ? samples : samples.filter((sample) => sample.startsWith(name + of))),
      ]),
    );
  }

  #text(linesOf: (name: string, family: Family, samples: readonly string[]) => string[]): string {
    return Object.entries(families)
      .flatMap(([name, family]) => {
        const samples = this.#samples.get(name);
        return samples === undefined ? [] : linesOf(name, family, samples);
      })
      .map((line) => `${line}\n`)
      .join("");
  }
}

const isList = <T>(value: number | Durations | readonly T[]): value is readonly T[] => Array.isArray(value);

/** Each bucket counts all durations up to its bound. A histogram that is a gauge has ages. */
function histogramLines(
  name: string,
  isGauge: boolean,
  labels: Readonly<Record<string, string>>,
  { counts, sumMs }: Durations,
): string[] {
  const bounds = isGauge ? AGE_BUCKETS_MS : BUCKETS_MS;
  const g = isGauge ? "g" : "";
  let count = 0;
  const buckets = counts.map((inBucket, index) => {
    count += inBucket;
    const bound = bounds[index];
    const le = bound === undefined ? "+Inf" : boundText(bound / 1_000);
    return `${name}_bucket${labelText({ ...labels, le })} ${count}`;
  });
  return [
    ...buckets,
    `${name}_${g}sum${labelText(labels)} ${sumMs / 1_000}`,
    `${name}_${g}count${labelText(labels)} ${count}`,
  ];
}

function sampleName(name: string, type: Family["type"]): string {
  if (type === "gauge") return name;
  return `${name}_${type === "counter" ? "total" : "info"}`;
}

function headOf(name: string, { type, help }: Family): string[] {
  const unit = UNITS.find((each) => name.endsWith(`_${each}`));
  return [
    `# TYPE ${name} ${type}`,
    ...(unit === undefined ? [] : [`# UNIT ${name} ${unit}`]),
    `# HELP ${name} ${escaped(help)}`,
  ];
}

/** OpenMetrics wants `1.0`, so that the series have the same labels whoever reads them. */
const boundText = (seconds: number): string =>
  Number.isInteger(seconds) ? seconds.toFixed(1) : String(seconds);

function labelText(labels: Readonly<Record<string, string>>): string {
  const pairs = Object.entries(labels).map(([label, value]) => `${label}="${escaped(value)}"`);
  return pairs.length === 0 ? "" : `{${pairs.join(",")}}`;
}

const escaped = (value: string): string => escapedHelp(value).replaceAll('"', '\\"');

/** Prometheus has no escape for quotes in `HELP`. */
const escapedHelp = (value: string): string => value.replaceAll("\\", "\\\\").replaceAll("\n", "\\n");
