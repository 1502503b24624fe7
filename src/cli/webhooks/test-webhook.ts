import type { WebhookDelivery } from "../../users/client/api-types.ts";
import { commandLine } from "../../common/text/shell-word.ts";
import { callRoute } from "../connection/call-route.ts";
import type { Context } from "../framework/context.ts";
import { exitCodes } from "../framework/exit-codes.ts";
import type { Result } from "../output/result.ts";
import { pathOf } from "./find-webhook.ts";

export async function testWebhook(
  context: Context,
  id: string,
  { reason }: { reason?: string },
): Promise<Result> {
  const { delivery } = await callRoute<{ delivery: WebhookDelivery }>(context, {
    method: "POST",
    path: pathOf(id, "/test"),
    body: JSON.stringify({ reason }),
  });
  const { state, http_status: status, last_error: error } = delivery;
  const isDelivered = state === "delivered";
  return {
    document: { delivery },
    text: () =>
      isDelivered
        ? `The test message was delivered (HTTP ${status}).`
        : `The test message was not delivered: ${error ?? "for an unknown reason"}.`,
    nextSteps: isDelivered ? [] : [commandLine("webhooks", "deliveries", id)],
    exitCode: isDelivered ? exitCodes.ok : exitCodes.failed,
  };
}
