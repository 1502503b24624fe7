import type { Part } from "../../../client/index.ts";
import type { HistoryPoint } from "../../../client/api-types.ts";
import { commandLine } from "../../../text/shell-word.ts";
import { CommandError, usageError } from "../../framework/command-error.ts";
import type { Context } from "../../framework/context.ts";
import { exitCodes } from "../../framework/exit-codes.ts";
import { callPart } from "../call-part.ts";

interface ReconcilingShard {
  shard: number;
  part: Part;
  loss: NonNullable<Part["loss"]>;
  accepted: HistoryPoint;
}

/** @throws unless the part is a shard that has accepted its loss */
export async function requireReconciling(context: Context, id: string): Promise<ReconcilingShard> {
  const shard = /^shard-(\d{1,3})$/.exec(id)?.[1];
  if (shard === undefined)
    throw usageError(`${id} is no shard: a ledger and the directory are complete once they are reconciled`);
  const { part } = await callPart<{ part: Part }>(context, "GET", id);
  const { loss } = part;
  if (part.state === "reconciling" && loss !== null && loss.accepted !== null)
    return { shard: Number(shard), part, loss, accepted: loss.accepted };
  throw new CommandError(
    part.state === "lost"
      ? `${id} has not accepted its loss yet, so it shows no claims`
      : `${id} is not being reconciled`,
    exitCodes.conflict,
    part.state === "lost" ? [`${commandLine("parts", "reconcile", id)} --dry-run`] : [],
  );
}
