import { expect, test } from "vitest";
import { ProxyMetrics } from "../../../../src/users/router/metrics.ts";
import { failureOf } from "../../../../src/users/router/proxy/failure.ts";

test("the counters are in the text format of Prometheus", () => {
  const metrics = new ProxyMetrics();
  const { hooks } = metrics;
  for (const hops of [0, 0, 1]) hooks.onForwarded?.({ rule: "paths", cell: "1", status: 200, hops });
  for (const rule of ["paths", "paths", 'a "rule"\\\n'])
    hooks.onRefused?.({ rule, cell: "1", hops: 0, epoch: null, tombstoneEpoch: null });
  hooks.onProxyFailure?.(failureOf("no_cell", "no rule matches this request"));
  expect(metrics.text().split("\n")).toEqual([
    "# HELP proxy_requests_total Requests by what became of them.",
    "# TYPE proxy_requests_total counter",
    'proxy_requests_total{result="forwarded"} 2',
    'proxy_requests_total{result="healed"} 1',
    'proxy_requests_total{result="no_cell"} 1',
    "# HELP proxy_refused_total Answers of cells that do not have the name.",
    "# TYPE proxy_refused_total counter",
    'proxy_refused_total{rule="paths"} 2',
    'proxy_refused_total{rule="a \\"rule\\"\\\\\\n"} 1',
    "",
  ]);
});
