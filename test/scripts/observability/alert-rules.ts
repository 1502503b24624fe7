/** What tests read from `deploy/observability`. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { families } from "../../../src/coordinator/capabilities/families.ts";
import { ProxyMetrics, RouterMetrics } from "../../../src/users/router/index.ts";

const root = join(import.meta.dirname, "../../..");
export const folder = join(root, "deploy/observability");

export const textOf = (path: string): string => readFileSync(join(root, path), "utf8");

interface AlertRule {
  name: string;
  /** The lines of the rule. */
  text: string;
}

/** The rules of the file, as text: it has a fixed form, and Prometheus itself checks that it is valid. */
export function alertRules(): AlertRule[] {
  const [, ...blocks] = textOf("deploy/observability/alerts.yml").split(/^ {6}- alert: /m);
  return blocks.map((text) => ({ name: text.slice(0, text.indexOf("\n")), text }));
}

const SUFFIXES: Readonly<Record<string, readonly string[]>> = {
  counter: ["_total"],
  gauge: [""],
  info: ["_info"],
  histogram: ["_bucket", "_sum", "_count"],
  gaugehistogram: ["_bucket", "_gsum", "_gcount"],
};

/** The names of all samples that a coordinator or a router can have. */
export function sampleNames(): ReadonlySet<string> {
  const own = Object.entries(families).map(([name, { type }]) => [name, type]);
  const ofRouters = `${new ProxyMetrics().text()}${new RouterMetrics().text()}`.matchAll(
    /^# TYPE (\S+?)(?:_total)? (\S+)$/gm,
  );
  const all = [...own, ...[...ofRouters].map(([, name = "", type = ""]) => [name, type])];
  return new Set(
    all.flatMap(([name = "", type = ""]) => (SUFFIXES[type] ?? []).map((suffix) => name + suffix)),
  );
}

/** The names in an expression that are metrics of this project. */
export const namesIn = (expression: string): string[] =>
  expression.match(/\b(?:leasehold|route|report|proxy)_[a-z_]+\b/g) ?? [];
