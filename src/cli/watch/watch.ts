import { readPositions, type Positions } from "../../users/router/positions.ts";
import type { Bucket } from "../../users/client/index.ts";
import { LONGEST_S } from "../framework/arguments.ts";
import { keyFactsOf } from "../connection/key-facts.ts";
import { messageOf, usageError } from "../framework/command-error.ts";
import type { Context } from "../framework/context.ts";
import { durationText, secondsOf } from "../../common/text/duration.ts";
import { toJson } from "../../common/text/escape.ts";
import { printNextSteps } from "../output/print.ts";
import { commandLine } from "../../common/text/shell-word.ts";
import { ChangesWatch } from "./watch-changes.ts";
import { FleetWatch } from "./watch-fleet.ts";
import { isOutage, NameWatch } from "./watch-names.ts";
import type { Watched, WatchEvent } from "./watch-event.ts";

interface WatchOptions {
  changes?: boolean;
  type?: string;
  cell?: string;
  from?: string;
  interval: number;
}

/** As many names as ten lookups. */
const MAX_NAMES = 1_000;

const FIRST_BACKOFF_MS = 1_000;
const MAX_BACKOFF_MS = 30_000;

/** Prints what changes until Ctrl-C. An outage is reported and waited for. */
export async function watch(
  context: Context,
  names: readonly string[],
  options: WatchOptions,
): Promise<undefined> {
  if (context.format === "json") throw usageError("a watch is one document per line: give --jsonl");
  const watched = await watchedBy(context, names, options);
  const { io } = context;
  let backoffMs = 0;
  try {
    for (;;) {
      io.signal.throwIfAborted();
      try {
        await print(context, await watched.poll());
        if (backoffMs > 0) await io.err.write("The deployment answers again.\n");
        backoffMs = 0;
      } catch (error) {
        if (io.signal.aborted || !isOutage(error)) throw error;
        backoffMs = Math.min(MAX_BACKOFF_MS, backoffMs === 0 ? FIRST_BACKOFF_MS : backoffMs * 2);
        const why = messageOf(error);
        await io.err.write(`No answer: ${why} Trying again in ${durationText(backoffMs)}.\n`);
      }
      await io.wait(backoffMs || options.interval * 1_000);
    }
  } finally {
    const { changes, type, cell } = options;
    if (io.signal.aborted && watched.place !== undefined)
      await printNextSteps(io, [
        commandLine(
          "watch",
          ...(changes === true ? ["--changes"] : []),
          ...flag("--type", type),
          ...flag("--cell", cell),
          ...flag("--from", watched.place),
          ...(names.length === 0 ? [] : ["--", ...names]),
        ),
      ]);
  }
}

const flag = (name: string, value: string | undefined): string[] =>
  value === undefined ? [] : [name, value];

async function watchedBy(
  context: Context,
  names: readonly string[],
  { changes, type, cell, from }: WatchOptions,
): Promise<Watched> {
  const { io } = context;
  const client = await context.client();
  if (changes === true) {
    if (names.length > 0) throw usageError("--changes is about all names: leave the names out");
    positionsOf(from);
    return new ChangesWatch(client, { cell, type, from });
  }
  if (names.length === 0) {
    if (type !== undefined) throw usageError("--type is only for names: give one, or leave it out");
    return new FleetWatch(client, {
      cell,
      fromMs: from === undefined ? io.now() : timeOf(from, io.now()),
      warn: (text) => void io.err.write(`Note: ${text}.\n`).catch(() => undefined),
    });
  }
  if (names.length > MAX_NAMES) throw usageError(`give at most ${MAX_NAMES} names`);
  if (type === undefined) throw usageError("--type is required: the bucket type of the names");
  const buckets = names.map((value) => ({ type, value }) as Bucket);
  const positions = positionsOf(from);
  // Keys of cells may not read reports, so every look asks for all names.
  const readsReports = keyFactsOf((await context.target()).key)?.role !== "cell";
  if (from !== undefined && !readsReports) throw usageError("--from needs an operator or router key");
  return new NameWatch(client, buckets, positions, { cell, readsReports });
}

function positionsOf(from: string | undefined): Positions {
  const positions = from === undefined ? new Map<number, number>() : readPositions(from);
  if (typeof positions === "string") throw usageError(`--from ${positions}`);
  return positions;
}

/** Without names, the place is a time: that of the first audit entries. */
function timeOf(given: string, nowMs: number): number {
  const seconds = secondsOf(given);
  if (seconds !== undefined && seconds <= LONGEST_S) return nowMs - seconds * 1_000;
  const ms = /^\d{4}-\d\d-\d\dT/.test(given) ? Date.parse(given) : NaN;
  if (Number.isNaN(ms))
    throw usageError(
      "--from must be a time such as 2026-01-31T12:00:00Z, or how long ago, such as 10m, at most 36500d",
    );
  return ms;
}

async function print({ io, format }: Context, events: readonly WatchEvent[]): Promise<void> {
  const at = new Date(io.now()).toISOString();
  for (const { document, text } of events) {
    if (format === "jsonl") await io.out.write(`${toJson({ seen_at: at, ...document })}\n`);
    else if (text !== undefined) await io.out.write(`${at}  ${text}\n`);
  }
}
