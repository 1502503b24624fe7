import { isLeaseholdError } from "../../users/client/index.ts";
import type { Shards } from "../../users/client/api-types.ts";
import { commandLine } from "../../common/text/shell-word.ts";
import { CommandError, messageOf, usageError, exitCodes } from "../framework/command-error.ts";
import type { Context } from "../framework/context.ts";
import { failureOf } from "../framework/failure.ts";
import { reminder } from "../output/reminder.ts";
import type { Result } from "../output/result.ts";
import { confirm, reasonOf, type ChangeOptions } from "../safety/confirm.ts";
import {
  changeGrowth,
  readShards,
  stepGrowth,
  type Growth,
  describeShards,
  nextOf,
  progressOf,
} from "./shards.ts";

interface GrowOptions extends ChangeOptions {
  to: number;
  /** False: the command stops before the cut. */
  cut: boolean;
}

const PAUSE_MS = 1_000;
/** Failures, or steps without any progress, in a row after which the command gives up. It can be repeated. */
const MOST_FAILURES = 60;

/** Gets the deployment more shards: copies, cuts and cleans up. Repeated, it goes on where it ended. */
export async function growShards(context: Context, options: GrowOptions): Promise<Result> {
  const reason = reasonOf(options);
  const { to } = options;
  const before = await readShards(context);
  refuseOther(before, to);
  if (options.dryRun === true) return preview(before, to);
  if (before.growth === null && before.shards === to) return unchanged(before);
  const isCut = before.growth !== null && before.growth.phase !== "copying";
  if (!isCut)
    await confirm(context, options, { name: String(to), effect: effectOf(before, options, reason) });
  const started = isCut ? before : await changeGrowth(context, "", { shards: to, reason });
  const copied = await work(context, started, to, isNotReady);
  const copying = copied.growth?.to === to && copied.growth.phase === "copying" ? copied.growth : null;
  if (!options.cut && copying !== null) return stopped(copied, copying);
  const cut = copying === null ? copied : await cutWhenReady(context, copied, to, reason);
  if (!isCut) await context.io.err.write(`The deployment has ${to} shards. Old rows are deleted now.\n`);
  const done = await work(context, cut, to, () => true);
  return {
    document: { ...done, changed: true, dry_run: false },
    text: () => `The deployment has ${done.shards} shards.`,
    notes: ["There is no undo: a deployment can't get fewer shards."],
    nextSteps: ["leasehold audit --action cut_growth"],
  };
}

/** @throws if the deployment has more shards, or grows to another number */
function refuseOther({ shards, growth }: Shards, to: number): void {
  if (growth !== null && growth.to !== to)
    throw new CommandError(
      `the deployment grows from ${growth.from} to ${growth.to} shards: nothing was changed`,
      exitCodes.conflict,
      nextOf(growth),
    );
  if (growth === null && to < shards)
    throw usageError(`--to must be at least ${shards}, the present number of shards: it can only grow`);
}

const unchanged = (shards: Shards): Result => ({
  document: { ...shards, changed: false, dry_run: false },
  text: () => `The deployment has ${shards.shards} shards already. Nothing was changed.`,
});

function effectOf({ shards, growth }: Shards, { to, cut }: GrowOptions, reason: string): string {
  const from = growth?.from ?? shards;
  const what = growth === null ? "gets this deployment" : "goes on to get this deployment";
  const when = cut
    ? "Names are copied while everything works. The cut then moves them, which has no undo."
    : "Names are copied. Nothing is served differently, and it can be aborted.";
  return `This ${what} from ${from} to ${to} shards, because: ${reason}\n${when}`;
}

const preview = (shards: Shards, to: number): Result => ({
  document: { ...shards, would_be: to, changed: false, dry_run: true },
  text: (style) =>
    `${describeShards(shards, style)}\n\n` +
    (shards.growth === null && shards.shards < to
      ? `Would get ${to} shards. About ${share(shards.shards, to)} % of all names would move.`
      : shards.growth === null
        ? "There is nothing to do."
        : "Would go on with this growth."),
  notes: ["Nothing was changed."],
});

const share = (from: number, to: number): number => Math.round((100 * (to - from)) / to);

const stopped = (shards: Shards, { to }: Growth): Result => ({
  document: { ...shards, changed: true, dry_run: false, undo: "leasehold shards abort --reason TEXT" },
  text: (style) => describeShards(shards, style),
  notes: ["All names are copied. The growth waits for its cut.", "To undo it: leasehold shards abort"],
  nextSteps: [`${commandLine("shards", "grow", "--to", String(to))} --reason TEXT`],
});

/** Orders the cut. More changes may wait by then, so it is tried again after some steps. */
async function cutWhenReady(context: Context, copied: Shards, to: number, reason: string): Promise<Shards> {
  let now = copied;
  for (let tries = 1; ; tries += 1) {
    try {
      return await changeGrowth(context, "/cut", { reason });
    } catch (error) {
      // Another operator may have aborted it, or it was cut and has ended.
      if (isLeaseholdError(error) && error.reason === "GROWTH_UNKNOWN") {
        const after = await readShards(context);
        refuseAborted(after, to);
        if (after.growth?.to !== to) return after;
      }
      const mayBeReady = isLeaseholdError(error) && error.reason === "GROWTH_NOT_COPIED";
      if (!mayBeReady || tries === MOST_FAILURES) throw interrupted(context, now, error);
      now = await work(context, await stepGrowth(context), to, isNotReady);
    }
  }
}

const isNotReady = (growth: Growth): boolean => !growth.can_be_cut;

/**
 * Repeats steps while the growth to this number has work left. Prints the progress when it has changed, and
 * again from time to time.
 *
 * @throws if another operator has aborted the growth meanwhile
 */
async function work(
  context: Context,
  from: Shards,
  to: number,
  isLeft: (growth: Growth) => boolean,
): Promise<Shards> {
  const { signal, wait } = context.io;
  const remind = reminder(context.io);
  const hasWork = ({ growth }: Shards): boolean => growth?.to === to && isLeft(growth);
  let now = from;
  let idle = 0;
  for (let failures = 0; hasWork(now);) {
    // Ctrl-C ends the wait, and the next turn says how to go on.
    if (failures + idle > 0) await wait(PAUSE_MS).catch(() => undefined);
    try {
      signal.throwIfAborted();
      now = await stepGrowth(context);
      failures = 0;
    } catch (error) {
      failures += 1;
      const mayPass = isLeaseholdError(error)
        ? error.retryable
        : error instanceof CommandError && error.exitCode === exitCodes.unavailable;
      if (signal.aborted || !mayPass || failures === MOST_FAILURES) throw interrupted(context, now, error);
      await remind(`no progress: ${messageOf(error)}`);
      continue;
    }
    if (now.growth === null) break;
    const line = progressOf(now.growth);
    idle = await remind(line);
    if (idle === MOST_FAILURES)
      throw interrupted(context, now, new CommandError(`nothing moves (${line})`, exitCodes.unavailable));
  }
  refuseAborted(now, to);
  return now;
}

function refuseAborted({ shards, growth }: Shards, to: number): void {
  if (shards >= to || growth?.to === to) return;
  throw new CommandError(
    `the growth to ${to} shards was aborted meanwhile: the deployment has ${shards} shards`,
    exitCodes.conflict,
    growth === null ? ["leasehold audit --action abort_growth"] : nextOf(growth),
  );
}

function interrupted({ io }: Context, { growth }: Shards, error: unknown): CommandError {
  const { message = messageOf(error), exitCode } = failureOf(error, io.signal.aborted);
  return new CommandError(
    `the growth goes on without this command, which has stopped: ${message.replace(/\.$/, "")}. The cron ` +
      "makes some steps each minute, and the same command makes the rest",
    exitCode === exitCodes.ok ? exitCodes.failed : exitCode,
    growth === null ? ["leasehold shards"] : nextOf(growth),
  );
}
