import type { WebhookDelivery } from "../../users/client/api-types.ts";
import { commandLine } from "../../common/text/shell-word.ts";
import { callRoute } from "../connection/call-route.ts";
import { pageSizeFor, type LimitOption } from "../framework/arguments.ts";
import type { Context } from "../framework/context.ts";
import { listResult, take, type Result } from "../output/result.ts";
import { pathOf } from "./find-webhook.ts";

interface Page {
  deliveries: WebhookDelivery[];
  next_page_token: string;
}

export async function listDeliveries(context: Context, id: string, { limit }: LimitOption): Promise<Result> {
  const { items, isCut } = await take(deliveriesOf(context, id, limit), limit);
  return listResult<WebhookDelivery>({
    name: "deliveries",
    items,
    isCut,
    columns: [
      { title: "TIME", value: ({ created_at: at }) => at },
      { title: "EVENT", value: ({ event }) => event },
      { title: "STATUS", value: ({ status }) => status },
      { title: "SUBJECT", value: ({ subject }) => subject },
      { title: "STATE", value: ({ state }) => state.toUpperCase() },
      { title: "ATTEMPTS", value: ({ attempts }) => attempts, isNumber: true },
      { title: "HTTP", value: ({ http_status: status }) => status, isNumber: true },
      { title: "NEXT ATTEMPT", value: ({ next_attempt_at: at }) => at },
      { title: "LAST ERROR", value: ({ last_error: error }) => error },
    ],
    empty: "There are no messages to this webhook.",
    nextSteps: items[0]?.state === "delivered" ? [] : [commandLine("webhooks", "test", id)],
  });
}

async function* deliveriesOf(
  context: Context,
  id: string,
  limit: number,
): AsyncGenerator<WebhookDelivery, void, void> {
  const path = pathOf(id, "/deliveries");
  for (let token: string | undefined; token !== "";) {
    const query = new URLSearchParams({
      page_size: String(pageSizeFor(limit)),
      ...(token === undefined ? {} : { page_token: token }),
    });
    const page: Page = await callRoute<Page>(context, { method: "GET", path: `${path}?${query}` });
    yield* page.deliveries;
    token = page.next_page_token;
  }
}
