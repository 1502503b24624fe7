import type { Webhook, WebhookDelivery } from "../../users/client/api-types.ts";
import { webhookState } from "../../common/status/webhook-state.ts";
import { durationText } from "../../common/text/duration.ts";
import { commandLine } from "../../common/text/shell-word.ts";
import type { Context } from "../framework/context.ts";
import { listResult, take, type Result } from "../output/result.ts";
import { eventsText } from "./webhook-settings.ts";
import { callRoute } from "../connection/call-route.ts";
import { pageSizeFor, type LimitOption } from "../framework/arguments.ts";
import { exitCodes, CommandError, usageError } from "../framework/command-error.ts";
import { confirm, reasonOf, type ChangeOptions } from "../safety/confirm.ts";

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

/** What a person types to confirm. Ids begin with a time, so their ends differ most. */
const TYPED_CHARS = 8;

export const typedNameOf = (id: string): string => id.slice(-TYPED_CHARS);

async function readWebhooks(context: Context): Promise<readonly Webhook[]> {
  const request = { method: "GET", path: "/v1/admin/webhooks" };
  return (await callRoute<{ webhooks: Webhook[] }>(context, request)).webhooks;
}

/** @throws a usage error for what is no id, such as an address, before anything is sent */
export function pathOf(id: string, rest = ""): string {
  if (!/^[\w-]{1,64}$/.test(id)) throw usageError("ID must be the id of a webhook, not its address");
  return `/v1/admin/webhooks/${id}${rest}`;
}

/** @throws an error with the exit code 4 if there is no such webhook */
export async function findWebhook(context: Context, id: string): Promise<Webhook> {
  pathOf(id);
  const webhook = (await readWebhooks(context)).find((each) => each.id === id);
  if (webhook === undefined)
    throw new CommandError(`there is no webhook ${id}`, exitCodes.notFound, ["leasehold webhooks ls"]);
  return webhook;
}

/** Reads an address where neither the list of processes nor the history of the shell shows it. */
export async function readAddress({ io }: Context): Promise<string> {
  const given =
    io.prompt === undefined ? await io.readInput() : await io.prompt.askHidden("Address of the webhook: ");
  const address = given.trim();
  if (address === "") throw usageError("no address was given: type it, or pipe it in");
  // The coordinator has more rules. It must not be shown here.
  if (!/^https?:\/\/\S+$/i.test(address) || !URL.canParse(address))
    throw usageError("the address must be a URL that begins with https://");
  return address;
}

/** What may be shown of an address. */
export const originOf = (url: string): string => new URL(url).origin;
