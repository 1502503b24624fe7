import { keyFactsOf } from "../connection/key-facts.ts";
import { isLoopback } from "../connection/loopback.ts";
import { CommandError, messageOf, usageError, exitCodes, type ExitCode } from "../framework/command-error.ts";
import type { Context } from "../framework/context.ts";
import { durationText } from "../../common/text/duration.ts";
import type { Result } from "../output/result.ts";
import { commandLine } from "../../common/text/shell-word.ts";
import { table, type Column } from "../output/table.ts";
import { confirm } from "../safety/confirm.ts";
import { openCell, type BenchCell } from "./bench-cell.ts";
import { isRunId, newRunId, prefixOf, type BenchTypes } from "./bench-run.ts";
import { cleanUp, type CleanedUp } from "./clean-up.ts";
import type { Latencies } from "./latencies.ts";
import { load, type Loaded } from "./load.ts";

interface BenchOptions extends BenchTypes {
  for: number;
  leases: number;
  concurrency: number;
  cell?: string;
  cleanUp?: string;
  yes?: boolean;
}

/** Puts load on a deployment, and gives up all names in the end, after Ctrl-C too. */
export async function bench(context: Context, options: BenchOptions): Promise<Result> {
  const { cleanUp: earlier } = options;
  if (earlier !== undefined && !isRunId(earlier))
    throw usageError("--clean-up must be the id of a run: 8 hexadecimal digits");
  const run = earlier ?? newRunId();
  await confirmLoad(context, options, run);
  const cell = await openCell(context, options.cell, run, earlier !== undefined);
  if (earlier !== undefined) return cleanUpResult(run, cell, await finish(context, options, cell, run, []));
  await context.io.err.write(`Run ${run}: names begin with ${prefixOf(run)}, in cell ${cell.id}.\n`);
  let loaded: Loaded | undefined;
  try {
    loaded = await load(cell.loading, context.io, {
      run,
      types: options,
      concurrency: options.concurrency,
      forMs: options.for * 1_000,
      leases: options.leases,
    });
  } catch (error) {
    const { problems } = await finish(context, options, cell, run, []);
    for (const problem of problems) await context.io.err.write(`${problem}\n`);
    throw error;
  }
  const finished = await finish(context, options, cell, run, loaded.open);
  return resultOf(context, run, cell, loaded, finished);
}

/** Anything that is not on this machine may be in use by others. */
async function confirmLoad(context: Context, options: BenchOptions, run: string): Promise<void> {
  const { url, key } = await context.target();
  if (isLoopback(url)) return;
  const registersCell = options.cell === undefined && keyFactsOf(key)?.role === "operator";
  const effect =
    options.cleanUp === undefined
      ? `This puts load on ${url} for up to ${durationText(options.for * 1_000)}, ${options.concurrency} ` +
        "calls at a time. It shares the limits of the deployment with everybody who uses it." +
        (registersCell
          ? " It registers a cell and removes it again. The id is used up for good, and counts against " +
            "`max_cell_ids`; with --cell, none is."
          : "")
      : `This gives up all names of run ${run} at ${url}.`;
  await confirm(context, options, { name: new URL(url).host, effect });
}

interface Finished {
  cleaned: CleanedUp | undefined;
  problems: readonly string[];
  nextSteps: readonly string[];
}

const cellFlag = (given: string | undefined): string[] => (given === undefined ? [] : ["--cell", given]);

/** Cleans up, and says how to do so later if it can't. */
async function finish(
  context: Context,
  { source, cell: given }: BenchOptions,
  cell: BenchCell,
  run: string,
  open: readonly string[],
): Promise<Finished> {
  const problems: string[] = [];
  const nextSteps: string[] = [];
  let cleaned: CleanedUp | undefined;
  if (context.io.signal.aborted)
    await context.io.err.write("Cleaning up. Ctrl-C once more ends at once, and leaves the names.\n");
  try {
    cleaned = await cleanUp(cell.cleaning, run, { source }, open);
  } catch (error) {
    problems.push(`Not all names of run ${run} could be given up: ${messageOf(error)}`);
    nextSteps.push(commandLine("bench", "--clean-up", run, ...cellFlag(given), "--source", source));
  }
  try {
    await cell.close(cleaned !== undefined);
  } catch (error) {
    problems.push(
      `The key of the run or its cell ${cell.id} is left: ${messageOf(error).replace(/\.$/, "")}. ` +
        "The key expires within an hour.",
    );
    if (error instanceof CommandError) nextSteps.push(...error.nextSteps);
    nextSteps.push(commandLine("keys", "ls", "--cell", cell.id), commandLine("cells", "show", cell.id));
  }
  return { cleaned, problems, nextSteps };
}

function cleanUpResult(run: string, cell: BenchCell, { cleaned, problems, nextSteps }: Finished): Result {
  return {
    document: { run, cell: cell.id, clean_up: cleaned ?? null, problems },
    text: () =>
      cleaned === undefined
        ? ""
        : `Gave up ${cleaned.destroyed} names of run ${run}, and rolled back ${cleaned.rolled_back} leases.`,
    notes: problems,
    nextSteps,
    exitCode: problems.length > 0 ? exitCodes.failed : exitCodes.ok,
  };
}

const columns: readonly Column<Latencies>[] = [
  { title: "CALL", value: ({ op }) => op },
  { title: "COUNT", value: ({ count }) => count, isNumber: true },
  { title: "PER S", value: (each) => each.per_second, isNumber: true },
  { title: "P50 MS", value: (each) => each.p50_ms, isNumber: true },
  { title: "P90 MS", value: (each) => each.p90_ms, isNumber: true },
  { title: "P99 MS", value: (each) => each.p99_ms, isNumber: true },
  { title: "MAX MS", value: (each) => each.max_ms, isNumber: true },
  { title: "FAILED", value: ({ failed }) => failedText(failed) },
];

const failedText = (failed: Latencies["failed"]): string =>
  Object.entries(failed)
    .map(([code, count]) => `${count} ${code}`)
    .join(", ");

function resultOf(
  { io }: Context,
  run: string,
  cell: BenchCell,
  { tookMs, leases, latencies, endedBecause }: Loaded,
  { cleaned, problems, nextSteps }: Finished,
): Result {
  const hasFailures = latencies.some(({ failed }) => Object.keys(failed).length > 0);
  const exitCode: ExitCode = io.signal.aborted
    ? exitCodes.interrupted
    : hasFailures || problems.length > 0
      ? exitCodes.failed
      : exitCodes.ok;
  return {
    document: {
      run,
      cell: cell.id,
      took_ms: Math.round(tookMs),
      leases,
      calls: latencies,
      clean_up: cleaned ?? null,
      problems: [...(endedBecause === undefined ? [] : [endedBecause]), ...problems],
      interrupted: io.signal.aborted,
    },
    lines: latencies,
    text: (style) => table(latencies, columns, style),
    notes: [
      ...(endedBecause === undefined ? [] : [`The run ended early: ${endedBecause}`]),
      ...(cleaned === undefined
        ? []
        : [
            `${leases} leases in ${(tookMs / 1_000).toFixed(1)} s. ` +
              `All ${cleaned.destroyed} names were given up again.`,
          ]),
      ...problems,
    ],
    nextSteps,
    exitCode,
  };
}
