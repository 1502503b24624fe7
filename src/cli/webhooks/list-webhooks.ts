import type { Webhook } from "../../users/client/api-types.ts";
import { webhookState } from "../../common/status/webhook-state.ts";
import { durationText } from "../../common/text/duration.ts";
import { commandLine } from "../../common/text/shell-word.ts";
import type { Context } from "../framework/context.ts";
import { listResult, type Result } from "../output/result.ts";
import { readWebhooks } from "./find-webhook.ts";
import { originOf } from "./read-address.ts";
import { eventsText } from "./webhook-settings.ts";

export async function listWebhooks(context: Context): Promise<Result> {
  const nowMs = context.io.now();
  const webhooks = await readWebhooks(context);
  const failing = webhooks.find((each) => webhookState(each) === "FAILING");
  return listResult<Webhook>({
    name: "webhooks",
    items: webhooks,
    isCut: false,
    columns: [
      { title: "ID", value: ({ id }) => id },
      { title: "ADDRESS", value: ({ url }) => originOf(url) },
      { title: "STATE", value: webhookState },
      { title: "EVENTS", value: ({ events }) => eventsText(events) },
      { title: "DELIVERED", value: ({ delivered }) => delivered, isNumber: true },
      { title: "FAILED", value: ({ failed_attempts: failed }) => failed, isNumber: true },
      { title: "GIVEN UP", value: ({ given_up: givenUp }) => givenUp, isNumber: true },
      { title: "WAITING", value: ({ queued }) => queued, isNumber: true },
      { title: "OLDEST", value: (each) => ageOf(each.oldest_queued_at, nowMs), isNumber: true },
      { title: "LAST ERROR", value: ({ last_error: error }) => error },
    ],
    empty: "There are no webhooks.",
    nextSteps:
      webhooks.length === 0
        ? ["leasehold webhooks add"]
        : failing === undefined
          ? []
          : [commandLine("webhooks", "deliveries", failing.id)],
  });
}

const ageOf = (time: string | null, nowMs: number): string | null =>
  time === null ? null : durationText(nowMs - Date.parse(time));
