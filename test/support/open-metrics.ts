/** A reader of the text format of OpenMetrics that accepts nothing else. */

interface Sample {
  name: string;
  labels: Readonly<Record<string, string>>;
  value: number;
}

export interface ReadFamily {
  type: string;
  help: string;
  unit: string | undefined;
  samples: Sample[];
}

const SUFFIXES: Readonly<Record<string, readonly string[]>> = {
  counter: ["_total"],
  gauge: [""],
  info: ["_info"],
  histogram: ["_bucket", "_sum", "_count"],
  gaugehistogram: ["_bucket", "_gsum", "_gcount"],
};

const HEAD = /^# (TYPE|UNIT|HELP) ([a-z_]+) (.+)$/;
const SAMPLE = /^([a-z_]+)(?:\{(.*)\})? (-?\d+(?:\.\d+)?(?:e[+-]\d+)?)$/;
const LABEL = /([a-z]+)="((?:[^"\\\n]|\\[\\"n])*)"(?:,|$)/y;

/** Reads a text. Throws at the first line that is not valid, or not in the family whose head came last. */
export function readOpenMetrics(text: string): ReadonlyMap<string, ReadFamily> {
  const families = new Map<string, ReadFamily>();
  const lines = text.split("\n");
  if (lines.pop() !== "" || lines.pop() !== "# EOF")
    throw new Error("the text must end with # EOF and a line feed");
  let name = "";
  const seen = new Set<string>();
  for (const line of lines) {
    const [, keyword, family = "", rest = ""] = HEAD.exec(line) ?? [];
    if (keyword === "TYPE") {
      if (families.has(family)) throw new Error(`${family} has two heads`);
      name = family;
      families.set(name, { type: rest, help: "", unit: undefined, samples: [] });
      continue;
    }
    const current = families.get(name);
    if (current === undefined) throw new Error(`no family has begun: ${line}`);
    if (keyword !== undefined) {
      if (family !== name || current.samples.length > 0)
        throw new Error(`a head in the wrong place: ${line}`);
      if (keyword === "HELP") current.help = rest;
      else if (name.endsWith(`_${rest}`)) current.unit = rest;
      else throw new Error(`${name} does not end with its unit ${rest}`);
      continue;
    }
    const sample = readSample(line);
    const suffixes = SUFFIXES[current.type] ?? [];
    if (!suffixes.some((suffix) => sample.name === name + suffix))
      throw new Error(`${sample.name} is no ${current.type} of ${name}`);
    const series = JSON.stringify([sample.name, Object.entries(sample.labels).map(String).toSorted()]);
    if (seen.has(series)) throw new Error(`a sample twice: ${line}`);
    seen.add(series);
    current.samples.push(sample);
  }
  return families;
}

function readSample(line: string): Sample {
  const [, name = "", labelText = "", value = ""] = SAMPLE.exec(line) ?? [];
  if (name === "") throw new Error(`not a sample: ${line}`);
  const labels: Record<string, string> = {};
  LABEL.lastIndex = 0;
  let end = 0;
  for (let match = LABEL.exec(labelText); match !== null; match = LABEL.exec(labelText)) {
    const [, label = "", text = ""] = match;
    labels[label] = text.replaceAll("\\n", "\n").replaceAll('\\"', '"').replaceAll("\\\\", "\\");
    end = LABEL.lastIndex;
  }
  if (end !== labelText.length) throw new Error(`not labels: ${labelText}`);
  return { name, labels, value: Number(value) };
}

/** The value of the only sample of a family with these labels. */
export function valueOf(
  families: ReadonlyMap<string, ReadFamily>,
  family: string,
  labels: Readonly<Record<string, string>> = {},
): number | undefined {
  const found = families
    .get(family)
    ?.samples.filter((sample) =>
      Object.entries(labels).every(([label, value]) => sample.labels[label] === value),
    );
  if (found === undefined || found.length === 0) return undefined;
  if (found.length > 1) throw new Error(`${family} has ${found.length} samples with these labels`);
  return found[0]?.value;
}
