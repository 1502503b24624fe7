import { parseArgs } from "node:util";
import { BadOption, parsed } from "../program.ts";

const parts = ["counts", "verify", "backfill"] as const;
export type Part = (typeof parts)[number];

export const usage = `npm run bench:verification -- [options]

  --rows N      number of rows and claims (default 1,000,000)
  --names FILE  names for the backfill, one per line, plain or gzipped
                (default: generated from the names in demo/data)
  --parts NAMES comma-separated parts: counts (rows read per call), verify (includes export), backfill
                (default: all)
  --small       20,000 rows and 10,000 names, to check that the benchmark works
  --report      write the report of earlier measurements, without measuring
  --help        print this help

A run with 1,000,000 rows writes its report to docs/bench. Other runs write it to .bench.
`;

const ROWS = 1_000_000;
const SMALL_ROWS = 20_000;
const BACKFILLED = 200_000;

export interface Options {
  rows: number;
  /** The number of names to generate when no file is given. */
  backfilled: number;
  namesFile: string | undefined;
  parts: readonly Part[];
  reportOnly: boolean;
  /** Whether the run has the default number of rows, so that its report may be published. */
  isWhole: boolean;
}

/** Returns undefined when only the usage was asked for. Throws `BadOption` for a wrong option. */
export function readOptions(argv: readonly string[]): Options | undefined {
  const { rows, names, parts: wanted, small = false, report = false, help } = argumentsOf(argv);
  if (help === true) return undefined;
  const count = rows === undefined ? (small ? SMALL_ROWS : ROWS) : Number(rows);
  if (!Number.isSafeInteger(count) || count < 1)
    throw new BadOption(`--rows takes a whole number above 0, not ${JSON.stringify(rows)}`);
  return {
    rows: count,
    backfilled: Math.min(BACKFILLED, Math.ceil(count / 2)),
    namesFile: names,
    parts: wanted === undefined ? parts : wanted.split(",").map(partOf),
    reportOnly: report,
    isWhole: count === ROWS,
  };
}

function partOf(name: string): Part {
  const found = parts.find((part) => part === name);
  if (found === undefined)
    throw new BadOption(`--parts takes ${parts.join(", ")}, not ${JSON.stringify(name)}`);
  return found;
}

function argumentsOf(argv: readonly string[]) {
  const flag = { type: "boolean" } as const;
  const text = { type: "string" } as const;
  const options = { rows: text, names: text, parts: text, small: flag, report: flag, help: flag } as const;
  return parsed(() => parseArgs({ args: [...argv], options }).values);
}
