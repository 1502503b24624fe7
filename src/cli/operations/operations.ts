import type { Operation } from "../../users/client/api-types.ts";
import type { Context } from "../framework/context.ts";
import type { Result } from "../output/result.ts";
import { table } from "../output/table.ts";
import { CommandError, exitCodes } from "../framework/command-error.ts";
import { confirm, reasonOf, type ChangeOptions } from "../safety/confirm.ts";
import { callRoute } from "../connection/call-route.ts";

export async function listOperations(context: Context): Promise<Result> {
  const operations = await readOperations(context);
  return {
    document: { operations },
    text: (style) => (operations.length === 0 ? "No operation runs." : table(operations, COLUMNS, style)),
    notes: operations.map(({ id, how_to_end: howToEnd }) => `To end ${id}: ${howToEnd}.`),
  };
}

const COLUMNS = [
  { title: "ID", value: ({ id }: Operation) => id },
  { title: "KIND", value: ({ kind }: Operation) => kind },
  { title: "ABOUT", value: ({ about }: Operation) => about },
  { title: "STARTED", value: ({ started_at: startedAt }: Operation) => startedAt },
  { title: "BY", value: ({ started_by: startedBy }: Operation) => startedBy },
];

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

const PATH = "/v1/admin/operations";

export const readOperations = async (context: Context): Promise<readonly Operation[]> => {
  const read = await callRoute<{ operations: Operation[] }>(context, { method: "GET", path: PATH });
  return read.operations;
};

/** Keeps other operations from starting while a backup is restored. */
export const startRestore = (context: Context, id: string, reason: string): Promise<unknown> =>
  callRoute(context, { method: "POST", path: PATH, body: JSON.stringify({ id, kind: "restore", reason }) });

export const endRestore = (context: Context, id: string, reason: string): Promise<unknown> =>
  callRoute(context, {
    method: "POST",
    path: `${PATH}/${encodeURIComponent(id)}/end`,
    body: JSON.stringify({ reason }),
  });
