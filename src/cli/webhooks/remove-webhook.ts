import type { Webhook } from "../../users/client/api-types.ts";
import { callRoute } from "../connection/call-route.ts";
import type { Context } from "../framework/context.ts";
import type { Result } from "../output/result.ts";
import { confirm, reasonOf, type ChangeOptions } from "../safety/confirm.ts";
import { findWebhook, pathOf, typedNameOf } from "./find-webhook.ts";
import { originOf } from "./read-address.ts";

const FINAL = "There is no undo. A webhook that is added again has another secret.";

export async function removeWebhook(context: Context, id: string, options: ChangeOptions): Promise<Result> {
  pathOf(id);
  const reason = reasonOf(options);
  const before = await findWebhook(context, id);
  const what = `webhook ${id} to ${originOf(before.url)}, and ${before.queued} messages that wait`;
  if (options.dryRun === true)
    return {
      document: { webhook: before, changed: false, dry_run: true },
      text: () => `Would remove ${what}.`,
      notes: ["Nothing was changed."],
    };
  const effect = `This removes ${what}, because: ${reason}\n${FINAL}`;
  await confirm(context, options, { name: typedNameOf(id), effect });
  const { webhook } = await callRoute<{ webhook: Webhook }>(context, {
    method: "POST",
    path: pathOf(id, "/remove"),
    body: JSON.stringify({ reason }),
  });
  return {
    document: { webhook, changed: true, dry_run: false, undo: null },
    text: () => `Removed ${what}.`,
    notes: [FINAL],
    nextSteps: ["leasehold webhooks ls"],
  };
}
