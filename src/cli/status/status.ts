import { usageError, exitCodes } from "../framework/command-error.ts";
import type { Context } from "../framework/context.ts";
import { durationText } from "../../common/text/duration.ts";
import { countOf } from "../../common/text/count-of.ts";
import { printResult } from "../output/print.ts";
import type { Result } from "../output/result.ts";
import type { Style } from "../output/style.ts";
import { fields, table } from "../output/table.ts";
import { formatText, type CellStatus, type Observed } from "../../common/status/observed.ts";
import { CUT, reasonsOf } from "../../common/status/reasons.ts";
import { observe } from "./observe.ts";

interface StatusOptions {
  watch?: boolean;
  interval: number;
}

/** Moves the cursor to the top left, and clears the screen. */
const CLEAR = "\u001B[H\u001B[2J";

export async function status(
  context: Context,
  { watch, interval }: StatusOptions,
): Promise<Result | undefined> {
  if (watch !== true) return statusOnce(context);
  if (context.format === "json") throw usageError("with --watch, give --jsonl: --json prints one document");
  for (;;) {
    const result = await statusOnce(context);
    if (context.io.out.isTerminal && context.format === "text") await context.io.out.write(CLEAR);
    await printResult(context.io, result, context.format);
    await context.io.wait(interval * 1_000);
    context.io.signal.throwIfAborted();
  }
}

async function statusOnce(context: Context): Promise<Result> {
  const observed = await observe(context);
  const reasons = reasonsOf(observed).map(({ problem, next }) => ({
    problem,
    ...(next !== undefined && { next }),
  }));
  const isGreen = reasons.length === 0;
  return {
    document: { green: isGreen, ...observed, reasons },
    text: (style) => textOf(observed, reasons, style),
    notes: observed.cut ? [CUT] : [],
    nextSteps: [...new Set(reasons.flatMap(({ next }) => next ?? []))],
    exitCode: isGreen ? exitCodes.ok : exitCodes.failed,
  };
}

function textOf(observed: Observed, reasons: readonly { problem: string }[], style: Style): string {
  const { url, version, upgrade, placement, readiness, d1, cron, cells, shards, growth, key } = observed;
  const head = reasons.length === 0 ? style.good("GREEN") : style.bad("NOT GREEN");
  const facts = fields([
    ["deployment", url],
    ["version", version],
    ["format", formatText(upgrade)],
    ["placement", placement],
    ["shards", growth === null ? shards : `${shards}, growing to ${growth.to} (${growth.phase})`],
    ["ready", readiness],
    ["d1", d1],
    ["cron", cronText(cron)],
    ["key", key === null ? null : `${key.role}, expires in ${durationText(key.expires_in_ms)}`],
  ]);
  const parts = [
    `${style.bold(head)}  ${reasons.length === 0 ? "Everything that was asked works." : ""}`.trimEnd(),
    ...(reasons.length === 0 ? [] : [reasons.map(({ problem }) => `- ${problem}`).join("\n")]),
    facts,
    ...(cells.length === 0 ? [] : [table(cells, columns, style)]),
  ];
  return parts.join("\n\n");
}

const cronText = (cron: Observed["cron"]): string | null =>
  cron === null
    ? null
    : `finished ${durationText(cron.age_ms)} ago, ${countOf(cron.cells_failed, "cell")} failed`;

const columns = [
  { title: "CELL", value: ({ cell }: CellStatus) => cell },
  { title: "NAME", value: ({ name }: CellStatus) => name },
  { title: "STATE", value: ({ state }: CellStatus) => state ?? "UNREACHABLE" },
  { title: "OPEN LEASES", value: ({ outstanding_leases: count }: CellStatus) => count, isNumber: true },
  { title: "STALE", value: ({ stale_leases: count }: CellStatus) => count, isNumber: true },
  {
    title: "OLDEST",
    value: ({ oldest_stale_ms: ms }: CellStatus) => (ms === null ? null : durationText(ms)),
    isNumber: true,
  },
  { title: "UNAPPLIED", value: ({ unapplied_decisions: count }: CellStatus) => count, isNumber: true },
  {
    title: "SIZE",
    value: ({ stored_bytes: bytes }: CellStatus) =>
      bytes === null ? null : `${(bytes / 1_000_000).toFixed(1)} MB`,
    isNumber: true,
  },
];
