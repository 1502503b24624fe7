import type { WorkCounts } from "./work-counts.ts";

const columns: readonly (readonly [title: string, of: (counted: WorkCounts) => string | number | null])[] = [
  ["system", ({ system }) => system],
  ["work", ({ work }) => work],
  ["shards", ({ shards, system }) => (system === "leasehold" ? shards : null)],
  ["claims", ({ claims }) => (claims === 0 ? null : claims)],
  ["touched", ({ shardsTouched, system }) => (system === "leasehold" ? shardsTouched : null)],
  ["rounds", ({ rounds }) => rounds],
  ["messages", ({ messages }) => messages],
  ["to the directory", ({ directoryMessages }) => directoryMessages],
  ["transactions", ({ transactions }) => transactions],
  ["rows read", ({ rowsRead }) => rowsRead],
  ["rows written", ({ rowsWritten }) => rowsWritten],
  ["of the ledger", ({ ledgerRowsWritten }) => ledgerRowsWritten],
  ["of shards", ({ shardRowsWritten }) => shardRowsWritten],
  ["alarms set", ({ alarmsSet }) => alarmsSet],
  ["alarm runs", ({ alarmRuns }) => alarmRuns],
  ["D1 calls", ({ d1Calls }) => d1Calls],
  ["D1 rows read", ({ d1RowsRead }) => d1RowsRead],
  ["D1 rows written", ({ d1RowsWritten }) => d1RowsWritten],
];

/** The number of columns at the start that contain text. */
const WORDS = 2;

/** A Markdown table with one line for each operation. */
export function tableOf(counted: readonly WorkCounts[]): string {
  const lines = [
    columns.map(([title]) => title),
    columns.map((_, index) => (index < WORDS ? "---" : "---:")),
  ];
  for (const each of counted) lines.push(columns.map(([, of]) => textOf(of(each))));
  return lines.map((cells) => `| ${cells.join(" | ")} |`).join("\n");
}

function textOf(value: string | number | null): string {
  if (value === null) return "–";
  return typeof value === "string" ? value : String(Math.round(value * 100) / 100);
}
