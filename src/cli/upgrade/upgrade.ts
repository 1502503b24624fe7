import type { Upgrade } from "../../users/client/api-types.ts";
import type { Context } from "../framework/context.ts";
import type { Result } from "../output/result.ts";
import type { Style } from "../output/style.ts";
import { fields, table } from "../output/table.ts";
import { APPLY_MIGRATIONS } from "../../common/status/reasons.ts";
import { CommandError, exitCodes } from "../framework/command-error.ts";
import { confirm, reasonOf, type ChangeOptions } from "../safety/confirm.ts";
import { callRoute, changeRoute } from "../connection/call-route.ts";

export async function showUpgrade(context: Context): Promise<Result> {
  const upgrade = await readUpgrade(context);
  return {
    document: upgrade,
    text: (style) => describeUpgrade(upgrade, style),
    nextSteps: nextOf(upgrade),
  };
}

type Blocker = Upgrade["blockers"][number];

const COLUMNS = [
  { title: "PART", value: ({ part }: Blocker) => part },
  { title: "CAUSE", value: ({ cause }: Blocker) => cause },
  { title: "DETAIL", value: ({ detail }: Blocker) => detail },
];

function describeUpgrade(upgrade: Upgrade, style: Style): string {
  const { release, format, newest_format: newest, waiting_features: waiting, blockers } = upgrade;
  const about = fields([
    ["release", release],
    ["format in force", format],
    ["newest format", newest],
    ["waiting features", waiting.length === 0 ? null : waiting.join(", ")],
  ]);
  return blockers.length === 0 ? about : `${about}\n\n${table(blockers, COLUMNS, style)}`;
}

/** What an operator does next. */
function nextOf({ is_finished: isFinished, blockers }: Upgrade): string[] {
  if (blockers.some(({ cause }) => cause === "MISSING_MIGRATION")) return [APPLY_MIGRATIONS];
  return isFinished || blockers.length > 0 ? [] : ["leasehold upgrade finish --reason TEXT"];
}

/** Puts the newest format in force, unless something is in the way. */
export async function finish(context: Context, options: ChangeOptions): Promise<Result> {
  const reason = reasonOf(options);
  const before = await readUpgrade(context);
  if (before.is_finished)
    return {
      document: { ...before, changed: false, dry_run: options.dryRun === true },
      text: (style) => `The upgrade is finished already.\n\n${describeUpgrade(before, style)}`,
    };
  if (before.blockers.length > 0) throw blockedBy(before);
  if (options.dryRun === true)
    return {
      document: { ...before, changed: false, dry_run: true },
      text: () => `Would put format ${before.newest_format} in force, in place of ${before.format}.`,
      notes: ["Nothing was changed."],
    };
  await confirm(context, options, {
    name: String(before.newest_format),
    effect:
      `This puts format ${before.newest_format} in force, because: ${reason}\n` +
      "There is no undo: versions that do not speak it can never be used again.",
  });
  const after = await finishUpgrade(context, before.newest_format, reason);
  return {
    document: { ...after, changed: true, dry_run: false },
    text: (style) => `Format ${after.format} is in force.\n\n${describeUpgrade(after, style)}`,
    nextSteps: ["leasehold audit --action finish_upgrade"],
  };
}

function blockedBy(upgrade: Upgrade): CommandError {
  const named = upgrade.blockers.map(({ part, detail }) => `\n- ${part}: ${detail}`);
  return new CommandError(
    `the upgrade can't be finished yet: nothing was changed${named.join("")}`,
    exitCodes.conflict,
    nextOf(upgrade),
  );
}

/** A call asks every part, twice at most. */
const TIMEOUT_MS = 60_000;

const PATH = "/v1/admin/upgrade";

export async function readUpgrade(context: Context): Promise<Upgrade> {
  const request = { method: "GET", path: PATH, timeoutMs: TIMEOUT_MS };
  return (await callRoute<{ upgrade: Upgrade }>(context, request)).upgrade;
}

async function finishUpgrade(context: Context, format: number, reason: string): Promise<Upgrade> {
  const body = JSON.stringify({ format, reason });
  const request = { method: "POST", path: `${PATH}/finish`, body, timeoutMs: TIMEOUT_MS };
  return (await changeRoute<{ upgrade: Upgrade }>(context, request, "leasehold upgrade")).upgrade;
}
