import { renderTable } from "../../../demo/table.ts";
import { mean, percentile, trendOf, type Minute, type Trend } from "./samples.ts";
import type { Soak } from "./soak.ts";

const ms = (value: number): string => (Number.isNaN(value) ? "–" : value.toFixed(1));
const inUnit = (value: number, unit: string): string =>
  Number.isNaN(value) ? "–" : `${value.toFixed(1)} ${unit}`;
const mb = (values: readonly number[]): string => (values.length === 0 ? "–" : mean(values).toFixed(1));

const head = [
  "calls",
  "refused",
  "unknown",
  "replays",
  "begin p50",
  "p99",
  "commit p50",
  "p99",
  "lookup p50",
  "p99",
  "node MB",
  "workerd MB",
  "state MB",
  "WAL MB",
  "kills",
  "restarts",
  "cells' kills",
  "complaints",
];

const rowOf = ({
  minute,
  latencies,
  answered,
  refused,
  unknown,
  replays,
  ...rest
}: Minute): (string | number)[] => [
  String(minute + 1),
  answered + refused + unknown,
  refused,
  unknown,
  replays,
  ...[latencies.begin, latencies.commit, latencies.lookup].flatMap((all) => [
    ms(percentile(all, 0.5)),
    ms(percentile(all, 0.99)),
  ]),
  mb(rest.nodeMb),
  mb(rest.workerdMb),
  mb(rest.databaseMb),
  mb(rest.walMb),
  rest.kills,
  rest.restarts,
  rest.clientKills,
  rest.complaints,
];

/** One point per minute, starting at `from`. Minutes without a value are left out. */
function points(
  minutes: readonly Minute[],
  from: number,
  value: (minute: Minute) => number,
): [number, number][] {
  return minutes
    .filter(({ minute }) => minute >= from)
    .map((minute): [number, number] => [minute.minute, value(minute)])
    .filter(([, y]) => !Number.isNaN(y));
}

/**
 * Trends of memory and latencies in the undisturbed half, after its first minute, and of file sizes once
 * outcomes have been pruned for a while.
 */
function trends({ minutes: all, undisturbedFromMinute, retentionS, options }: Soak): Trend[] {
  // The last minute is incomplete.
  const minutes = all.filter(({ minute }) => minute < options.minutes);
  const firstMinute = Math.ceil(undisturbedFromMinute) + 1;
  // Outcomes are kept for the retention, then cron runs copy and prune them.
  const full = Math.ceil(retentionS / 60) + 2;
  const p = (kind: "begin" | "commit" | "lookup", share: number) => (minute: Minute) =>
    percentile(minute.latencies[kind], share);
  return [
    trendOf(
      "memory of node",
      "MB",
      points(minutes, firstMinute, ({ nodeMb }) => mean(nodeMb)),
      0.15,
      10,
    ),
    trendOf(
      "memory of workerd",
      "MB",
      points(minutes, firstMinute, ({ workerdMb }) => mean(workerdMb)),
      0.15,
      20,
    ),
    trendOf(
      "databases",
      "MB",
      points(minutes, full, ({ databaseMb }) => mean(databaseMb)),
      0.15,
      1,
    ),
    trendOf(
      "write-ahead logs",
      "MB",
      points(minutes, full, ({ walMb }) => mean(walMb)),
      0.3,
      10,
    ),
    trendOf("begin, p50", "ms", points(minutes, firstMinute, p("begin", 0.5)), 0.3, 5),
    trendOf("begin, p99", "ms", points(minutes, firstMinute, p("begin", 0.99)), 0.5, 50),
    trendOf("commit, p50", "ms", points(minutes, firstMinute, p("commit", 0.5)), 0.3, 5),
    trendOf("commit, p99", "ms", points(minutes, firstMinute, p("commit", 0.99)), 0.5, 50),
    trendOf("lookup, p50", "ms", points(minutes, firstMinute, p("lookup", 0.5)), 0.3, 5),
    trendOf("lookup, p99", "ms", points(minutes, firstMinute, p("lookup", 0.99)), 0.5, 50),
  ];
}

const trendRow = ({
  name,
  unit,
  points: count,
  mean: average,
  growth,
  tolerance,
  isFlat,
}: Trend): (string | number)[] => [
  name,
  count,
  inUnit(average, unit),
  inUnit(count === 0 ? Number.NaN : growth, unit),
  inUnit(tolerance, unit),
  count < 3 ? "too short to log" : isFlat ? "flat" : "GROWS",
];

export function report(soak: Soak): string[] {
  const { totals, complaints } = soak;
  const all: [string, number][] = [
    ["kill -9 of the coordinator, or of one half of it", totals.kills],
    ["graceful restarts", totals.restarts],
    ["kill -9 of a cell's process", totals.clientKills],
    ["cycles of load and full verification", totals.cycles],
    ["calls", totals.calls],
    ["calls whose outcome was not known", totals.unknown],
    ["calls made again", totals.replays],
    ["leases decided by the cells' reconciliation", totals.reconciled],
    ["complaints of the verification", complaints.length],
  ];
  return [
    ...renderTable({
      title: "minute",
      head,
      rows: soak.minutes.filter(({ databaseMb }) => databaseMb.length > 0).map(rowOf),
    }),
    "",
    ...renderTable({
      title: "trend",
      head: ["minutes", "mean", "growth", "allowed", "verdict"],
      rows: trends(soak).map(trendRow),
    }),
    "",
    ...renderTable({ title: "totals", head: ["number"], rows: all }),
  ];
}
