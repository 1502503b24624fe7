import { CommandError } from "../framework/command-error.ts";
import type { Context } from "../framework/context.ts";
import { exitCodes } from "../framework/exit-codes.ts";
import type { Result } from "../output/result.ts";
import { confirm, reasonOf, type ChangeOptions } from "../safety/confirm.ts";
import { endRestore, readOperations } from "./call-operations.ts";

/** Ends a restore that was given up. All other operations end in their own ways. */
export async function endOperation(context: Context, id: string, options: ChangeOptions): Promise<Result> {
  const reason = reasonOf(options);
  const operation = (await readOperations(context)).find((each) => each.id === id);
  if (operation === undefined)
    return {
      document: { id, changed: false, dry_run: options.dryRun === true },
      text: () => `Operation ${id} does not run.`,
    };
  if (operation.kind !== "restore")
    throw new CommandError(
      `operation ${id} is a ${operation.kind}, which is not ended like this: ${operation.how_to_end}`,
      exitCodes.conflict,
    );
  if (options.dryRun === true)
    return {
      document: { ...operation, changed: false, dry_run: true },
      text: () => `Would end the restore that began at ${operation.started_at}.`,
      notes: ["Nothing was changed."],
    };
  await confirm(context, options, {
    name: id,
    effect:
      `This ends the restore that began at ${operation.started_at}, because: ${reason}\n` +
      "It stops nothing: a command that still restores goes on. But other operations may start beside it.",
  });
  await endRestore(context, id, reason);
  return {
    document: { ...operation, changed: true, dry_run: false },
    text: () => "The restore does not count as running any more.",
    notes: ["The shards stay as the restore has left them: `leasehold parts show shard-0` says how."],
  };
}
