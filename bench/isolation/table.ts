import { median } from "../report/figures.ts";
import type { Round } from "./isolation.ts";

/** The begins of the other cell, as medians over the rounds, and the ratio of each round's two figures. */
export function tableOf(title: string, rounds: readonly Round[]): string {
  const row = (name: string, figure: (begins: Round["alone"]) => number): string => {
    const ratio = median(rounds.map(({ alone, loaded }) => figure(loaded) / figure(alone)));
    const shown = [
      median(rounds.map(({ alone }) => figure(alone))).toFixed(1),
      median(rounds.map(({ loaded }) => figure(loaded))).toFixed(1),
      ratio.toFixed(1),
    ];
    return `| ${[name, ...shown].join(" | ")} |`;
  };
  const sum = (figure: (round: Round) => number): number =>
    rounds.reduce((total, round) => total + figure(round), 0);
  return [
    `| ${title} | alone | loaded | loaded ÷ alone (goal: below 3) |`,
    "| --- | ---: | ---: | ---: |",
    row("p50 ms", ({ p50Ms }) => p50Ms),
    row("p99 ms", ({ p99Ms }) => p99Ms),
    row("cycles", ({ begins }) => begins),
    "",
    `${sum(({ loadCalls }) => loadCalls)} calls of the load, ` +
      `${sum(({ alone, loaded }) => alone.errors + loaded.errors)} errors of the other cell`,
  ].join("\n");
}
