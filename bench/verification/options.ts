import { parseArgs } from "node:util";
import { BadOption, parsed } from "../program.ts";

const parts = ["counts", "verify", "backfill"] as const;
export type Part = (typeof parts)[number];

export const usage = `npm run bench:verification -- [options]

  --rows N      rows and claims: 1,000,000 by default
  --names FILE  the names of the backfill, one in a line, plain or gzipped: by default those of demo/data, multiplied
  --parts NAMES counts (what one call reads), verify (which exports too), backfill; with commas between them
  --small       20,000 rows and 10,000 names, to see that all of it works
  --report      writes the report of what was measured, and measures nothing
  --help        this

Only a run with all rows is written into docs/bench; others are in .bench.
`;

const ROWS = 1_000_000;
const SMALL_ROWS = 20_000;
const BACKFILLED = 200_000;

export interface Options {
  rows: number;
  /** To be made, where there is no file. */
  backfilled: number;
  namesFile: string | undefined;
  parts: readonly Part[];
  reportOnly: boolean;
  /** Worth publishing. */
  isWhole: boolean;
}

/** Throws `BadOption` with what is wrong; undefined when only the usage was asked for. */
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
    throw new BadOption(`--parts knows ${parts.join(", ")}, not ${JSON.stringify(name)}`);
  return found;
}

function argumentsOf(argv: readonly string[]) {
  const flag = { type: "boolean" } as const;
  const text = { type: "string" } as const;
  const options = { rows: text, names: text, parts: text, small: flag, report: flag, help: flag } as const;
  return parsed(() => parseArgs({ args: [...argv], options }).values);
}
