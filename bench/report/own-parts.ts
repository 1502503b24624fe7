import { join } from "node:path";
import { Results, type Result } from "../growth/results.ts";
import { tableOf } from "../growth/table.ts";
import { axes } from "../growth/variants.ts";

/** What was measured of growth with this code. */
export const growthOf = (commit: string): Result[] =>
  new Results(join(import.meta.dirname, "../../.bench/growth.jsonl")).all.filter(
    (result) => result.commit === commit,
  );

export function growth(results: readonly Result[]): string[] {
  if (results.length === 0) return [];
  const tables = axes.flatMap((axis) => {
    const found = results.filter((result) => result.axis === axis);
    return found.length === 0 ? [] : ["", tableOf(axis, found)];
  });
  return [
    "## Growth",
    "",
    "32 clients, 1 claim per cycle. The rounds within each table are interleaved.",
    ...tables,
    "",
  ];
}
