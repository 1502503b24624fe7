import { AGE_BUCKETS_MS, BUCKETS_MS, type Durations } from "../../../kernel/metrics/histogram.ts";
import { families, type Family, type FamilyName, type HistogramName, type LabelsOf } from "./families.ts";

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
  readonly #samples = new Map<FamilyName, string[]>();

  add<Name extends Exclude<FamilyName, HistogramName>>(
    name: Name,
    labels: LabelsOf<Name>,
    value: number,
  ): void {
    this.#linesOf(name).push(`${sampleName(name)}${labelText(labels)} ${value}`);
  }

  /** Each bucket counts all durations up to its bound. A histogram that is a gauge has ages. */
  addHistogram<Name extends HistogramName>(
    name: Name,
    labels: LabelsOf<Name>,
    { counts, sumMs }: Durations,
  ): void {
    const lines = this.#linesOf(name);
    const isGauge = families[name].type === "gaugehistogram";
    const bounds = isGauge ? AGE_BUCKETS_MS : BUCKETS_MS;
    const g = isGauge ? "g" : "";
    let count = 0;
    for (const [index, inBucket] of counts.entries()) {
      count += inBucket;
      const bound = bounds[index];
      const le = bound === undefined ? "+Inf" : boundText(bound / 1_000);
      lines.push(`${name}_bucket${labelText({ ...labels, le })} ${count}`);
    }
    lines.push(
      `${name}_${g}sum${labelText(labels)} ${sumMs / 1_000}`,
      `${name}_${g}count${labelText(labels)} ${count}`,
    );
  }

  #linesOf(name: FamilyName): string[] {
    const lines = this.#samples.get(name) ?? [];
    this.#samples.set(name, lines);
    return lines;
  }

  openMetrics(): string {
    return `${this.#text((name, samples) => [...headOf(name), ...samples])}# EOF\n`;
  }

  /** https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format */
  prometheusText(): string {
    return this.#text((name, samples) => {
      const { type, help }: Family = families[name];
      return prometheusFamilies[type].flatMap(([end, textType, of]) => [
        `# HELP ${name}${end} ${escapedHelp(help)}`,
        `# TYPE ${name}${end} ${textType}`,
        ...(of === undefined ? samples : samples.filter((sample) => sample.startsWith(name + of))),
      ]);
    });
  }

  #text(linesOf: (name: FamilyName, samples: readonly string[]) => string[]): string {
    return (Object.keys(families) as FamilyName[])
      .flatMap((name) => {
        const samples = this.#samples.get(name);
        return samples === undefined ? [] : linesOf(name, samples);
      })
      .map((line) => `${line}\n`)
      .join("");
  }
}

function sampleName(name: FamilyName): string {
  const { type }: Family = families[name];
  if (type === "gauge") return name;
  return `${name}_${type === "counter" ? "total" : "info"}`;
}

function headOf(name: FamilyName): string[] {
  const { type, help }: Family = families[name];
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
