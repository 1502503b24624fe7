/** `npm run bench:routing`: lookups from memory beside lookups at the coordinator, and the router's delay. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { medianOf, numberOf, parsed, runProgram } from "../program.ts";
import { measureLookups } from "./lookups.ts";
import { measureProxies } from "./proxies.ts";

const usage = `npm run bench:routing -- [options]

  --rounds N    number of rounds (default 5)
  --seconds N   length of each measurement in a round (default 2)
  --help        print this help

Measures, with one caller: lookups from a router's memory and at the coordinator; and the p50 of a request to
a cell, directly, through a Worker that only forwards, and through the router's Worker. Prints each round and
the medians.
`;

interface Options {
  rounds: number;
  seconds: number;
}

function readOptions(argv: readonly string[]): Options | undefined {
  const text = { type: "string" } as const;
  const { values } = parsed(() =>
    parseArgs({
      args: [...argv],
      options: { rounds: text, seconds: text, help: { type: "boolean" } },
    }),
  );
  if (values.help === true) return undefined;
  return { rounds: numberOf("rounds", values.rounds, 5), seconds: numberOf("seconds", values.seconds, 2) };
}

const print = (line: string): void => void process.stdout.write(`${line}\n`);

/** Prints a row for each round, and the median of each column. */
function printTable<Row extends object>(columns: readonly (readonly [string, (row: Row) => number])[]) {
  return (rows: readonly Row[]): void => {
    const line = (cells: readonly string[]): string => cells.map((cell) => cell.padStart(22)).join("");
    print(line(["", ...columns.map(([name]) => name)]));
    for (const [round, row] of rows.entries())
      print(line([`round ${round + 1}`, ...columns.map(([, of]) => of(row).toPrecision(4))]));
    print(line(["median", ...columns.map(([, of]) => medianOf(rows.map((row) => of(row))).toPrecision(4))]));
    print("");
  };
}

async function run({ rounds, seconds }: Options): Promise<void> {
  const root = mkdtempSync(join(tmpdir(), "leasehold-bench-routing-"));
  try {
    print("Lookups per second of one caller");
    printTable<Awaited<ReturnType<typeof measureLookups>>[number]>([
      ["memory", ({ memory }) => memory],
      ["coordinator", ({ coordinator }) => coordinator],
      ["ratio", ({ memory, coordinator }) => memory / coordinator],
    ])(await measureLookups(join(root, "lookups"), rounds, seconds));
    print("p50 of a GET with one client, in ms");
    printTable<Awaited<ReturnType<typeof measureProxies>>[number]>([
      ["direct", ({ direct }) => direct],
      ["plain proxy", ({ plain }) => plain],
      ["router", ({ router }) => router],
      ["router ÷ plain proxy", ({ plain, router }) => router / plain],
      ["added ÷ added", ({ direct, plain, router }) => (router - direct) / (plain - direct)],
    ])(await measureProxies(join(root, "proxies"), rounds, seconds));
  } finally {
    rmSync(root, { recursive: true, force: true, maxRetries: 5 });
  }
}

await runProgram({ name: "bench:routing", usage, readOptions, run });
