import { AGE_BUCKETS_MS, BUCKETS_MS, type Durations } from "../../core/metrics/histogram.ts";
import { families, type Family, type FamilyName, type HistogramName, type LabelsOf } from "./families.ts";

/** The media type of OpenMetrics, to which the server adds the charset. */
export const OPEN_METRICS = "application/openmetrics-text; version=1.0.0";

/** The units at the ends of names that OpenMetrics wants to be declared. */
const UNITS = ["seconds", "bytes"];

/** Collects samples, and writes them family by family in the text format of OpenMetrics. */
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

  text(): string {
    const lines = (Object.keys(families) as FamilyName[]).flatMap((name) => {
      const samples = this.#samples.get(name);
      return samples === undefined ? [] : [...headOf(name), ...samples];
    });
    return `${lines.join("\n")}\n# EOF\n`;
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

const escaped = (value: string): string =>
  value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
