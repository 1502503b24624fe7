import { mkdirSync, writeFileSync } from "node:fs";
import { cpus, totalmem } from "node:os";
import { join } from "node:path";
import { claimsText } from "../measure/parts.ts";
import { peerNames, type PeerName } from "../peers.ts";
import type { Result } from "../results.ts";
import { heldLoad } from "../measure/load.ts";
import { targets } from "./targets.ts";
import { lineChart } from "./chart.ts";
import { figuresOf, median, ratiosOf, type Measurement } from "./figures.ts";
import { growth, growthOf } from "./own-parts.ts";

/** The errors of all parts except `knee`, whose last load is meant to fail. */
export const errorsOf = (results: readonly Result[]): number =>
  results.filter(({ part }) => part !== "knee").reduce((sum, { errors }) => sum + errors, 0);

/** Writes `results.md` and its charts into `folder`, from what was measured with the code of `commit`. */
export function writeReport(commit: string, results: readonly Result[], folder: string): void {
  const grown = growthOf(commit);
  mkdirSync(folder, { recursive: true });
  const batches = [...new Set(results.filter(({ part }) => part === "cycles").map(({ what }) => what))];
  for (const what of batches) writeFileSync(join(folder, chartName(what)), chart(results, what));
  const latencies = latencyChart(results);
  if (latencies !== undefined) writeFileSync(join(folder, LATENCIES), latencies);
  const sections = [
    heading(commit, results),
    ...targets({ results, growth: grown }),
    ...batches.flatMap((what) => cycles(results, what)),
    ...atOnce(results),
    ...load(results),
    ...knee(results),
    ...fsyncs(results),
    ...growth(grown),
  ];
  writeFileSync(join(folder, "results.md"), `${sections.join("\n")}\n`);
}

const chartName = (what: string): string => `cycles-${what.replaceAll(" ", "-")}.svg`;
const clientsOf = (results: readonly Result[], what: string): number[] =>
  [
    ...new Set(
      results
        .filter((result) => result.part === "cycles" && result.what === what)
        .map(({ clients }) => clients),
    ),
  ].toSorted((a, b) => a - b);
const measured = (results: readonly Result[]): PeerName[] =>
  peerNames.filter((name) => results.some(({ peer }) => peer === name));

function heading(commit: string, results: readonly Result[]): string {
  const [cpu] = cpus();
  const errors = errorsOf(results);
  const turns = results.reduce((sum, result) => sum + result.turns, 0).toLocaleString("en");
  const memoryGib = Math.round(totalmem() / 2 ** 30);
  return `# Benchmark results

\`npm run bench\` generates this page; [README.md](README.md) explains how to read it, and
[counts.md](counts.md) has what does not depend on the machine. Machine:
${cpus().length} cores (${cpu?.model ?? "unknown"}), ${memoryGib} GiB, shared by clients, peers and databases.
Date: ${new Date().toISOString().slice(0, 10)}. Commit: ${commit}.
Turns: ${turns}, of which ${errors} ended with an unexpected answer.
`;
}

function chart(results: readonly Result[], what: string): string {
  const lines = measured(results).map((name) => ({
    name,
    points: clientsOf(results, what).flatMap((clients): [number, number][] => {
      const figures = figuresOf(results, { part: "cycles", what, clients }, name);
      return figures === undefined ? [] : [[clients, figures.perSecond]];
    }),
  }));
  return lineChart(
    `Begin and commit, ${what}`,
    "clients",
    "cycles per second",
    lines.filter(({ points }) => points.length > 0),
  );
}

function cycles(results: readonly Result[], what: string): string[] {
  const lines = [`## Begin and commit, ${what}`, "", `![cycles per second](${chartName(what)})`, ""];
  for (const clients of clientsOf(results, what))
    lines.push(...table(results, { part: "cycles", what, clients }), "");
  return lines;
}

/** The peers whose ratio to every other peer is in the tables. */
const OWN_PEERS = ["leasehold", "standalone"] as const;

function table(results: readonly Result[], measurement: Measurement): string[] {
  const rows = measured(results).flatMap((name) => {
    const figures = figuresOf(results, measurement, name);
    if (figures === undefined) return [];
    const cells = [
      name,
      figures.perSecond.toFixed(0),
      figures.p50Ms.toFixed(1),
      figures.p99Ms.toFixed(1),
      figures.cpuMs.toFixed(2),
      String(figures.errors),
      ...OWN_PEERS.map((own) => {
        const ratios = ratiosOf(results, measurement, own, name);
        return ratios.length === 0 ? "" : median(ratios).toFixed(2);
      }),
    ];
    return [`| ${cells.join(" | ")} |`];
  });
  const { what, clients } = measurement;
  const title = clients === 0 ? what : `${what}, ${clients} ${clients === 1 ? "client" : "clients"}`;
  const ratios = OWN_PEERS.map((own) => `${own} ÷ this`).join(" | ");
  return [
    `| ${title} | per second | p50 ms | p99 ms | CPU ms each | errors | ${ratios} |`,
    "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ...rows,
  ];
}

function atOnce(results: readonly Result[]): string[] {
  const lines = ["## Lookups and refusals", ""];
  for (const what of ["hits", "misses", "held"])
    lines.push(...table(results, { part: "lookups", what, clients: 32 }), "");
  for (const what of ["begins refused", "begins granted"])
    lines.push(...table(results, { part: "refusals", what, clients: 32 }), "");
  return lines;
}

function load(results: readonly Result[]): string[] {
  if (!results.some(({ part }) => part === "load")) return [];
  const lines = [
    "## Production load",
    "",
    "Open loop: 100 batches of 3 claims and 500 lookups a second, each timed from the moment when it was",
    "due. The row of the cycles includes the processor time of the lookups.",
    "",
  ];
  for (const what of ["cycles under load", "lookups under load"])
    lines.push(...table(results, { part: "load", what, clients: 0 }), "");
  lines.push(`![latencies of the cycles](${LATENCIES})`, "");
  return lines;
}

const LATENCIES = "load-latencies.svg";

/** A chart of latency percentiles: how long the slowest 1 in 10, 1 in 100 and 1 in 1,000 calls take. */
function latencyChart(results: readonly Result[]): string | undefined {
  const lines = results.flatMap(({ part, what, peer, quantiles }) => {
    if (part !== "load" || what !== "cycles under load" || quantiles === undefined) return [];
    return [
      {
        name: peer,
        points: quantiles
          .filter(([share]) => share < 1)
          .map(([share, ms]) => [Math.round(1 / (1 - share)), ms] as const),
      },
    ];
  });
  return lines.length === 0
    ? undefined
    : lineChart("Cycles under production load", "1 call in N takes longer", "milliseconds", lines);
}

function knee(results: readonly Result[]): string[] {
  const names = measured(results.filter(({ part }) => part === "knee"));
  if (names.length === 0) return [];
  const lines = [
    "## Highest sustained load",
    "",
    "The same load, multiplied, until more than 1 call in 100 takes longer than a second, a call fails, or",
    "fewer than 95 % of the calls that are due complete.",
    "",
    "| | highest sustained load | claims a second | lookups a second |",
    "| --- | ---: | ---: | ---: |",
  ];
  const row = (name: PeerName): string => {
    const { times, isLast } = heldLoad(results, name);
    const least = isLast ? "≥ " : "";
    return `| ${name} | ${least}${times} × | ${least}${times * 300} | ${least}${times * 500} |`;
  };
  return [...lines, ...names.map(row), ""];
}

function fsyncs(results: readonly Result[]): string[] {
  const counted = results.filter(({ part }) => part === "fsyncs");
  if (counted.length === 0) return [];
  const rows = measured(results).map((name) => {
    const each = [1, 4].map((claims) =>
      counted.find(({ peer, what }) => peer === name && what === claimsText(claims)),
    );
    const perTurn = each.map((result) =>
      result?.fsyncs === undefined ? "" : (result.fsyncs / result.turns).toFixed(2),
    );
    return `| ${[name, ...perTurn].join(" | ")} |`;
  });
  const lines = [
    "## Disk waits",
    "",
    "Calls of `fsync` and `fdatasync` per cycle with 32 clients, counted by `perf`.",
    "",
  ];
  return [...lines, "| | 1 claim | 4 claims |", "| --- | ---: | ---: |", ...rows, ""];
}
