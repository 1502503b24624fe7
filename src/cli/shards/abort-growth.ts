import { CommandError } from "../framework/command-error.ts";
import type { Context } from "../framework/context.ts";
import { exitCodes } from "../framework/exit-codes.ts";
import type { Result } from "../output/result.ts";
import { confirm, reasonOf, type ChangeOptions } from "../safety/confirm.ts";
import { changeGrowth, readShards } from "./call-growth.ts";
import { nextOf } from "./show-shards.ts";

/** Ends a growth that was not cut. */
export async function abortGrowth(context: Context, options: ChangeOptions): Promise<Result> {
  const reason = reasonOf(options);
  const before = await readShards(context);
  const { growth } = before;
  if (growth === null)
    throw new CommandError("the deployment does not grow: there is nothing to abort", exitCodes.conflict);
  if (growth.phase !== "copying")
    throw new CommandError(
      `the growth to ${growth.to} shards was cut, so it goes on to its end`,
      exitCodes.conflict,
      nextOf(growth),
    );
  if (options.dryRun === true)
    return {
      document: { ...before, changed: false, dry_run: true },
      text: () => `Would abort the growth from ${growth.from} to ${growth.to} shards.`,
      notes: ["Nothing was changed."],
    };
  await confirm(context, options, {
    name: String(growth.to),
    effect:
      `This aborts the growth from ${growth.from} to ${growth.to} shards, because: ${reason}\n` +
      "No name has moved. The new shards delete their copies.",
  });
  const after = await changeGrowth(context, "/abort", { reason });
  return {
    document: { ...after, changed: true, dry_run: false },
    text: () => `The growth is aborted. The deployment has ${after.shards} shards, as before.`,
  };
}
