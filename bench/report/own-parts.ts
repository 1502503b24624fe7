import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { costTable } from "../cost/table.ts";
import type { WorkCounts } from "../counts/work-counts.ts";
import { tableOf as countsTable } from "../counts/table.ts";
import type { Result } from "../growth/results.ts";
import { tableOf as growthTable } from "../growth/table.ts";
import { axes } from "../growth/variants.ts";

const stored = (name: string): string | undefined => {
  const path = join(import.meta.dirname, "../../.bench", name);
  return existsSync(path) ? readFileSync(path, "utf8") : undefined;
};

/** The counts, which are the same on every machine, and the costs that follow from them. */
export function counts(): string[] {
  const text = stored("counts.json");
  if (text === undefined) return [];
  const counted = JSON.parse(text) as WorkCounts[];
  const lines = [
    "## Counts",
    "",
    "Counts per call, for calls that share no message with others. They are the same on every machine, and",
    "include the messages that the Worker sends.",
    "",
  ];
  return [...lines, countsTable(counted), "", ...costTable(counted)];
}

/** The growth tables of the commit that was measured last. */
export function growth(): string[] {
  const results = (stored("growth.jsonl") ?? "")
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Result);
  const newest = results.at(-1)?.commit;
  if (newest === undefined) return [];
  const ofAxis = axes.map((axis) => ({
    axis,
    found: results.filter((result) => result.commit === newest && result.axis === axis),
  }));
  const tables = ofAxis.flatMap(({ axis, found }) =>
    found.length === 0 ? [] : ["", growthTable(axis, found)],
  );
  return [
    "## Growth",
    "",
    `32 clients, 1 claim per cycle, commit ${newest}. The rounds within each table are interleaved.`,
    ...tables,
    "",
  ];
}
