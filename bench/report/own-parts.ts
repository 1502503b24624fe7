import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { costTable } from "../cost/table.ts";
import type { StoredCounts } from "../counts/work-counts.ts";
import { tableOf as countsTable } from "../counts/table.ts";
import { Results, type Result } from "../growth/results.ts";
import { tableOf as growthTable } from "../growth/table.ts";
import { axes } from "../growth/variants.ts";

const pathOf = (name: string): string => join(import.meta.dirname, "../../.bench", name);

/** The counts of this code, which are the same on every machine, and the costs that follow from them. */
export function counts(commit: string): string[] {
  const path = pathOf("counts.json");
  if (!existsSync(path)) return [];
  const { commit: countedCommit, counted } = JSON.parse(readFileSync(path, "utf8")) as StoredCounts;
  if (countedCommit !== commit) return [];
  const lines = [
    "## Counts",
    "",
    "Counts per call, for calls that share no message with others. They are the same on every machine, and",
    "include the messages that the Worker sends.",
    "",
  ];
  return [...lines, countsTable(counted), "", ...costTable(counted)];
}

/** What was measured of growth with this code. */
export const growthOf = (commit: string): Result[] =>
  new Results(pathOf("growth.jsonl")).all.filter((result) => result.commit === commit);

export function growth(results: readonly Result[]): string[] {
  if (results.length === 0) return [];
  const tables = axes.flatMap((axis) => {
    const found = results.filter((result) => result.axis === axis);
    return found.length === 0 ? [] : ["", growthTable(axis, found)];
  });
  return [
    "## Growth",
    "",
    "32 clients, 1 claim per cycle. The rounds within each table are interleaved.",
    ...tables,
    "",
  ];
}
