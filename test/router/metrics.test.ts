import { expect, test } from "vitest";
import { RouterMetrics } from "../../src/router/metrics.ts";
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

test("everything else is counted too, and the text is OpenMetrics", () => {
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
  expect(lines.slice(-2)).toEqual(["# EOF", ""]);
  const families = lines.filter((line) => line.startsWith("# TYPE")).map((line) => line.split(" ")[2]);
  expect(new Set(families).size).toBe(families.length);
});

test("the number of series is limited", () => {
  const metrics = new RouterMetrics();
  for (let rule = 0; rule < 1_500; rule += 1) metrics.hooks.onFallback({ rule: `rule-${rule}` });
  const lines = linesOf(metrics, "route_fallback_total");
  expect(lines).toHaveLength(1_001);
  expect(lines).toContain('route_fallback_total{rule="other"} 500');
});
