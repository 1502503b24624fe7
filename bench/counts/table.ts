import { usdOfWork } from "../cost/cost.ts";
import type { WorkCounts } from "./work-counts.ts";

type Value = string | number | null;

const columns: readonly (readonly [title: string, of: (counted: WorkCounts) => Value])[] = [
  ["system", ({ system }) => system],
  ["work", ({ work }) => work],
  ["shards", ({ shards, system }) => (system === "leasehold" ? shards : null)],
  ["claims", ({ claims }) => (claims === 0 ? null : claims)],
  ["shards touched", ({ shardsTouched, system }) => (system === "leasehold" ? shardsTouched : null)],
  ["rounds", ({ rounds }) => rounds],
  ["messages", ({ messages }) => messages],
  ["transactions", ({ transactions }) => transactions],
  ["syncs", ({ syncs }) => syncs],
  ["rows written", ({ rowsWritten }) => rowsWritten],
  ["ledger rows written", ({ ledgerRowsWritten }) => ledgerRowsWritten],
  ["shard rows written", ({ shardRowsWritten }) => shardRowsWritten],
  ["D1 rows written", ({ d1RowsWritten }) => d1RowsWritten],
  ["rows read", ({ rowsRead }) => rowsRead],
  ["D1 calls", ({ d1Calls }) => d1Calls],
  ["alarms set", ({ alarmsSet }) => alarmsSet],
  ["alarm runs", ({ alarmRuns }) => alarmRuns],
  ["USD per million", (counted) => usdOfWork(counted) * 1e6],
];

/** The number of columns at the start that contain text. */
const WORDS = 2;

/** A Markdown table with one line for each operation. */
export function tableOf(counted: readonly WorkCounts[]): string {
  const lines = [
    columns.map(([title]) => title),
    columns.map((_, index) => (index < WORDS ? "---" : "---:")),
  ];
  for (const each of counted) lines.push(columns.map(([, of]) => String(rounded(of(each), 2) ?? "–")));
  return lines.map((cells) => `| ${cells.join(" | ")} |`).join("\n");
}

/** A JSON array with one line for each operation. Its fields are the columns of the table. */
export function jsonOf(counted: readonly WorkCounts[]): string {
  const keyOf = (title: string): string => title.toLowerCase().replaceAll(" ", "_");
  const lines = counted.map((each) =>
    JSON.stringify(Object.fromEntries(columns.map(([title, of]) => [keyOf(title), rounded(of(each), 4)]))),
  );
  return `[\n${lines.join(",\n")}\n]`;
}

const rounded = (value: Value, digits: number): Value =>
  typeof value === "number" ? Number(value.toFixed(digits)) : value;
