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

/** What the machine has no part in, and what follows from it. */
export function counts(): string[] {
  const text = stored("counts.json");
  if (text === undefined) return [];
  const counted = JSON.parse(text) as WorkCounts[];
  const lines = [
    "## Counts",
    "",
    "Of one call that shares nothing with others; the same on every machine. Messages of the Worker are counted.",
    "",
  ];
  return [...lines, countsTable(counted), "", ...costTable(counted)];
}

/** Of the newest commit that was measured. */
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
    `32 clients, 1 claim in a cycle; each table is one run of interleaved rounds, of commit ${newest}.`,
    ...tables,
    "",
  ];
}
