import type { NewWebhook, Webhook } from "../../users/client/api-types.ts";
import { commandLine } from "../../common/text/shell-word.ts";
import { callRoute } from "../connection/call-route.ts";
import type { Context } from "../framework/context.ts";
import type { Result } from "../output/result.ts";
import { originOf, readAddress } from "./read-address.ts";
import { thresholdsAfter, type SettingOptions } from "./webhook-settings.ts";

interface AddOptions extends SettingOptions {
  disabled?: boolean;
  reason?: string;
  dryRun?: boolean;
}

export async function addWebhook(context: Context, options: AddOptions): Promise<Result> {
  const url = await readAddress(context);
  const wanted: NewWebhook = {
    url,
    events: options.events,
    thresholds: options.thresholds && thresholdsAfter({}, options.thresholds),
    for_s: options.for,
    resolve_s: options.resolve,
    enabled: options.disabled === true ? false : undefined,
    reason: options.reason,
  };
  if (options.dryRun === true)
    return {
      document: { webhook: null, wanted: { ...wanted, url: originOf(url) }, changed: false, dry_run: true },
      text: () => "",
      notes: [`Would add a webhook to ${originOf(url)}.`, "Nothing was changed."],
    };
  const { webhook, secret } = await callRoute<{ webhook: Webhook; secret: string }>(context, {
    method: "POST",
    path: "/v1/admin/webhooks",
    body: JSON.stringify(wanted),
  });
  const undo = `${commandLine("webhooks", "rm", webhook.id)} --reason TEXT`;
  return {
    document: { webhook, secret, changed: true, dry_run: false, undo },
    // Standard output has the secret alone, so that it can be piped.
    text: () => secret,
    notes: [
      `Webhook ${webhook.id} sends to ${originOf(url)}. The secret is shown only this once.`,
      `To undo it: ${undo}`,
    ],
    nextSteps: [commandLine("webhooks", "test", webhook.id)],
  };
}
