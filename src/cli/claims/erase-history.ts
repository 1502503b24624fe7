import type { Bucket } from "../../users/client/index.ts";
import type { Context } from "../framework/context.ts";
import type { Result } from "../output/result.ts";
import { countOf } from "../../common/text/count-of.ts";
import { confirm, reasonOf, type ChangeOptions } from "../safety/confirm.ts";
import { callRoute } from "../connection/call-route.ts";

interface EraseOptions extends ChangeOptions {
  type: Bucket["type"];
}

interface Erased {
  erased: number;
  /** Changes in the change feed that lose the name. */
  changes: number;
  has_more: boolean;
}

/** Erases the periods of a name that have ended. */
export async function eraseHistory(context: Context, name: string, options: EraseOptions): Promise<Result> {
  const reason = reasonOf(options);
  const bucket = { type: options.type, value: name };
  const erase = (dryRun: boolean): Promise<Erased> => {
    // No entry is made of a dry run, so its reason is kept nowhere.
    const body = JSON.stringify({ bucket, reason: reason || "a dry run", dry_run: dryRun });
    return callRoute<Erased>(context, { method: "POST", path: "/v1/admin/history/erase", body });
  };
  const found = await erase(true);
  const periods = `${found.has_more ? "more than " : ""}${countOf(found.erased, "past period")}`;
  if (options.dryRun === true)
    return {
      document: { bucket, ...found, dry_run: true },
      text: () => `Would erase ${periods} of the name${inFeed(found)}.`,
      notes: ["Nothing was changed."],
    };
  if (found.erased === 0 && found.changes === 0)
    return {
      document: { bucket, erased: 0, changes: 0, has_more: false, dry_run: false },
      text: () => "The name has no period that has ended. Nothing was changed.",
    };
  await confirm(context, options, {
    name,
    effect: [
      `This erases ${periods} of the name ${name} (${options.type})${inFeed(found)}, because: ${reason}`,
      `Its current claim stays. ${FINAL}`,
    ].join("\n"),
  });
  let [erased, changes] = [0, 0];
  for (let hasMore = true; hasMore;) {
    const done = await erase(false);
    erased += done.erased;
    changes += done.changes;
    hasMore = done.has_more;
  }
  return {
    document: { bucket, erased, changes, has_more: false, dry_run: false },
    text: () => `Erased ${countOf(erased, "past period")}${inFeed({ changes })}.`,
    notes: [FINAL],
    nextSteps: ["leasehold audit --action erase_history"],
  };
}

/** The change feed keeps names for some time after their periods were dropped. */
const inFeed = ({ changes }: Pick<Erased, "changes">): string =>
  changes === 0 ? "" : `, and the name in ${countOf(changes, "change")} of the change feed`;

const FINAL = "There is no undo, and the history doesn't say that something was erased.";
