import type { Upgrade } from "../../users/client/api-types.ts";
import { CommandError } from "../framework/command-error.ts";
import type { Context } from "../framework/context.ts";
import { exitCodes } from "../framework/exit-codes.ts";
import type { Result } from "../output/result.ts";
import { confirm, reasonOf, type ChangeOptions } from "../safety/confirm.ts";
import { finishUpgrade, readUpgrade } from "./call-upgrade.ts";
import { describeUpgrade, nextOf } from "./show-upgrade.ts";

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
