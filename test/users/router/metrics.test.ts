import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { ProxyMetrics, RouterMetrics } from "../../../src/users/router/metrics.ts";
import { name, world } from "./scripted-source.ts";

const linesOf = (metrics: RouterMetrics, start: string): string[] =>
  metrics
    .text()
    .split("\n")
    .filter((line) => line.startsWith(start));

test("answers are counted by result and layer, with their ages", async () => {
  const metrics = new RouterMetrics();
  const { clock, source, routes } = world({ reports: false }, metrics.hooks);
  source.claim("a", "1");
  await routes.find(name("a"));
  await clock.pass(700);
  await routes.findMany([name("a"), name("b")]);
  source.isDown = true;
  await clock.pass(10_000);
  await routes.find(name("a"));
  await routes.find(name("c"));
  expect(linesOf(metrics, "route_total")).toEqual([
    'route_total{result="found",layer="coordinator"} 1',
    'route_total{result="found",layer="memory"} 1',
    'route_total{result="none",layer="coordinator"} 1',
    'route_total{result="stale",layer="memory"} 1',
    'route_total{result="unavailable",layer="none"} 1',
  ]);
  expect(linesOf(metrics, "route_age_ms_")).toEqual([
    'route_age_ms_bucket{le="0"} 2',
    'route_age_ms_bucket{le="100"} 2',
    'route_age_ms_bucket{le="500"} 2',
    'route_age_ms_bucket{le="1000"} 3',
    'route_age_ms_bucket{le="2000"} 3',
    'route_age_ms_bucket{le="5000"} 3',
    'route_age_ms_bucket{le="15000"} 4',
    'route_age_ms_bucket{le="60000"} 4',
    'route_age_ms_bucket{le="300000"} 4',
    'route_age_ms_bucket{le="600000"} 4',
    'route_age_ms_bucket{le="+Inf"} 4',
    "route_age_ms_sum 11400",
    "route_age_ms_count 4",
  ]);
  expect(linesOf(metrics, "route_failure_total")).toEqual(['route_failure_total{operation="route"} 2']);
});

test("everything else is counted too, and each family once", () => {
  const metrics = new RouterMetrics();
  metrics.hooks.onFallback({ rule: 'a "rule"\\\n' });
  metrics.hooks.onMisdirected({ shard: 3 });
  metrics.hooks.onPositionRefused({ shard: 3 });
  metrics.hooks.onBackwards({ shard: 3 });
  metrics.hooks.onReport({ shard: 3, ageMs: 1_500, keys: 7 });
  metrics.hooks.onUnusableAddress({ cell: "7" });
  const lines = metrics.text().split("\n");
  expect(lines).toContain('route_fallback_total{rule="a \\"rule\\"\\\\\\n"} 1');
  expect(lines).toContain("route_misdirected_total 1");
  expect(lines).toContain("route_position_refused_total 1");
  expect(lines).toContain("route_backwards_total 1");
  expect(lines).toContain("report_keys_total 7");
  expect(lines).toContain('report_age_ms_bucket{le="2000"} 1');
  expect(lines).toContain('route_unusable_address_total{cell="7"} 1');
  const families = lines.filter((line) => line.startsWith("# TYPE")).map((line) => line.split(" ")[2]);
  expect(new Set(families).size).toBe(families.length);
});

test("the number of series is limited", () => {
  const [lookups, proxy] = [new RouterMetrics(), new ProxyMetrics()];
  for (let n = 0; n < 1_500; n += 1) {
    const rule = `rule-${n}`;
    lookups.hooks.onFallback({ rule });
    proxy.hooks.onRefused?.({ rule, cell: "1", hops: 0, epoch: null, tombstoneEpoch: null });
  }
  for (const [text, metric] of [
    [lookups.text(), "route_fallback_total"],
    [proxy.text(), "proxy_refused_total"],
  ] as const) {
    const lines = text.split("\n").filter((line) => line.startsWith(metric));
    expect(lines).toHaveLength(1_001);
    expect(lines).toContain(`${metric}{rule="other"} 500`);
  }
});

/** The text that the router Worker serves, with a sample of every family. */
function servedText(): string {
  const [lookups, proxy] = [new RouterMetrics(), new ProxyMetrics()];
  lookups.hooks.onRoute({ result: "found", layer: "memory", ageMs: 40.5 });
  lookups.hooks.onReport({ shard: 3, ageMs: 1_500, keys: 7 });
  lookups.hooks.onFallback({ rule: 'a "rule"\\\n, {x="1"} 2' });
  lookups.hooks.onMisdirected({ shard: 3 });
  lookups.hooks.onPositionRefused({ shard: 3 });
  lookups.hooks.onBackwards({ shard: 3 });
  lookups.hooks.onFailure({ operation: "route", detail: "down" });
  lookups.hooks.onUnusableAddress({ cell: "7" });
  proxy.hooks.onForwarded?.({ rule: "paths", cell: "1", status: 200, hops: 0 });
  proxy.hooks.onRefused?.({ rule: "paths", cell: "1", hops: 0, epoch: null, tombstoneEpoch: null });
  return `${proxy.text()}${lookups.text()}`;
}

/** Each family with the names of its labels, as the documentation writes it. */
function familiesOf(text: string): Map<string, string> {
  const families = new Map<string, string>();
  let [family, type] = ["", ""];
  const lines = text.split("\n");
  expect(lines.pop()).toBe("");
  for (const line of lines) {
    const [, helped] = /^# HELP ([a-z_]+) \S/.exec(line) ?? [];
    if (helped !== undefined) {
      expect([...families.keys()]).not.toContain(helped);
      family = helped;
      continue;
    }
    const [, typed, kind] = /^# TYPE ([a-z_]+) (counter|histogram)$/.exec(line) ?? [];
    if (typed !== undefined && kind !== undefined) {
      expect(typed).toBe(family);
      type = kind;
      continue;
    }
    const sample = /^([a-z_]+)(?:\{((?:[a-z]+="(?:[^"\\\n]|\\["\\n])*",?)+)\})? [\d.]+$/.exec(line);
    expect(sample, line).not.toBeNull();
    const [, sampleName = "", labels = ""] = sample ?? [];
    const suffixes = type === "counter" ? [""] : ["_bucket", "_sum", "_count"];
    if (type === "counter") expect(family).toMatch(/_total$/);
    expect(suffixes.map((suffix) => `${family}${suffix}`)).toContain(sampleName);
    const labelNames = [...labels.matchAll(/([a-z]+)="(?:[^"\\]|\\.)*"/g)].map(([, label]) => label);
    const shown = labelNames.length > 0 ? `{${labelNames.join(",")}}` : "";
    families.set(family, type === "counter" ? family + shown : family);
  }
  return families;
}

test("the text that the Worker serves is valid, and the documentation lists what is in it", () => {
  const served = new Set(familiesOf(servedText()).values());
  for (const metric of [
    "route_total{result,layer}",
    "route_age_ms",
    "report_age_ms",
    "route_fallback_total{rule}",
    "route_misdirected_total",
    "route_backwards_total",
  ])
    expect(served).toContain(metric);
  const documented = new Set(
    ["docs/reference/router.md", "docs/guides/deploy-a-router.md"].flatMap((path) => {
      const text = readFileSync(new URL(`../../../${path}`, import.meta.url), "utf8");
      return [...text.matchAll(/`((?:route|report|proxy)[a-z_]*_(?:total|ms)(?:\{[a-z,]+\})?)`/g)].map(
        ([, metric]) => metric,
      );
    }),
  );
  expect(documented).toEqual(served);
});
