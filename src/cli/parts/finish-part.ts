import type { Part } from "../../users/client/index.ts";
import type { Context } from "../framework/context.ts";
import type { Result } from "../output/result.ts";
import { confirm, reasonOf, type ChangeOptions } from "../safety/confirm.ts";
import { callPart } from "./call-part.ts";
import { describePart } from "./describe-part.ts";

/** The service doesn't check it (H6). */
const CONDITION = "Do it only once every cell has verified twice without changes.";

export async function finishPart(context: Context, id: string, options: ChangeOptions): Promise<Result> {
  const reason = reasonOf(options);
  if (options.dryRun === true) {
    const { part } = await callPart<{ part: Part }>(context, "GET", id);
    const what =
      part.state === "reconciling"
        ? `Would take ${id} back into service. ${CONDITION}`
        : `${id} is ${part.state}, so there is nothing to finish.`;
    return {
      document: { part, changed: false, dry_run: true },
      text: () => `${describePart(part)}\n${what}`,
      notes: ["Nothing was changed."],
    };
  }
  await confirm(context, options, {
    name: id,
    effect: `This takes ${id} back into service, because: ${reason}\n${CONDITION} There is no undo.`,
  });
  const { part } = await callPart<{ part: Part }>(context, "POST", id, "/finish", { reason });
  return { document: { part, changed: true, dry_run: false }, text: () => describePart(part) };
}
