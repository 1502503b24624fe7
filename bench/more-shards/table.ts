import type { Measured, Phase } from "./more-shards.ts";

/** The cycles of each phase, and their ratios to the quiet phase of the same run. */
export function tableOf(measured: ReadonlyMap<Phase, Measured>): string {
  const quiet = measured.get("quiet")?.latencies;
  const rows = [...measured].map(([phase, { latencies, errors, seconds }]) => {
    const ratio = (share: number): string =>
      (latencies.percentile(share) / (quiet?.percentile(share) ?? Number.NaN)).toFixed(1);
    const ms = (share: number): string => latencies.percentile(share).toFixed(1);
    const cells = [
      phase,
      seconds.toFixed(1),
      latencies.count,
      ms(0.5),
      ratio(0.5),
      ms(0.99),
      ratio(0.99),
      errors,
    ];
    return `| ${cells.join(" | ")} |`;
  });
  return [
    "| phase | s | cycles | p50 ms | ÷ quiet | p99 ms | ÷ quiet | errors |",
    "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ...rows,
  ].join("\n");
}
