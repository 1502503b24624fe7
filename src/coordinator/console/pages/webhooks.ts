import { webhookEvents } from "../../capabilities/webhooks/edge/events.ts";
import { webhookState } from "../../../common/status/webhook-state.ts";
import type { AnswerOf } from "../../api/internal-api.ts";
import type { Page } from "../layout.ts";
import { html, type Markup, type Part } from "../markup.ts";
import { tableOf } from "../table.ts";
import { agoOf, factsOf, failedPage, nextLink, whenOf, type View } from "../view.ts";
import { addForm, findWebhook, noWebhook, testForm, thresholdNames, type Webhook } from "./webhook-forms.ts";

type Delivery = AnswerOf<"listDeliveries">["deliveries"][number];

/** The path of an address may be a secret, so it is on no page. */
const originOf = ({ url }: Webhook): string => new URL(url).origin;

const stateOf = (webhook: Webhook): Markup => {
  const state = webhookState(webhook);
  const kind = { OK: "good", DISABLED: "warn", FAILING: "bad" }[state];
  return html`<span class="state ${kind}">${state}</span>`;
};

/** The endpoints that are told of events, and what came of their messages. */
export async function webhooksPage(view: View): Promise<Page> {
  const { api, nowMs } = view;
  const listed = await api.call("listWebhooks");
  if (!listed.ok) return failedPage("Webhooks", listed.problem);
  const { webhooks } = listed.value;
  const latest = new Map(
    await Promise.all(webhooks.map(async ({ id }) => [id, await latestDelivery(view, id)] as const)),
  );
  return {
    title: "Webhooks",
    main: html`${tableOf(
      "Webhooks, the oldest first. Addresses are shown without their paths.",
      webhooks,
      [
        { title: "Id", value: ({ id }) => html`<a class="id" href="/console/webhooks/${id}">${id}</a>` },
        { title: "Address", value: originOf },
        { title: "State", value: stateOf },
        { title: "Events", value: eventsOf },
        { title: "Delivered", value: ({ delivered }) => delivered, isNumber: true },
        { title: "Failed attempts", value: ({ failed_attempts: failed }) => failed, isNumber: true },
        { title: "Given up", value: ({ given_up: givenUp }) => givenUp, isNumber: true },
        { title: "Waiting", value: ({ queued }) => queued, isNumber: true },
        { title: "Last message", value: ({ id }) => lastOf(latest.get(id), nowMs) },
      ],
      "There is no webhook, so nobody is told of stale leases or lost changes.",
    )}
    ${view.canChange ? addForm(view) : undefined}`,
  };
}

const eventsOf = ({ events }: Webhook): string =>
  events.length === webhookEvents.length ? "all" : events.join(", ");

async function latestDelivery({ api }: View, id: string): Promise<Delivery | undefined> {
  const listed = await api.call("listDeliveries", { params: { id }, query: { page_size: "1" } });
  return listed.ok ? listed.value.deliveries[0] : undefined;
}

const lastOf = (delivery: Delivery | undefined, nowMs: number): Part =>
  delivery === undefined ? null : html`${stateOfDelivery(delivery)} ${agoOf(delivery.created_at, nowMs)}`;

/** One endpoint, with its latest messages. */
export async function webhookPage(view: View): Promise<Page> {
  const { api, input, nowMs, rest, canChange } = view;
  const [id = ""] = rest;
  const title = `Webhook ${id}`;
  const [found, deliveries] = await Promise.all([
    findWebhook(api, id),
    api.call("listDeliveries", {
      params: { id },
      query: { page_size: "50", page_token: input.get("page_token") ?? "" },
    }),
  ]);
  if (!found.ok) return failedPage(title, found.problem);
  if (found.value === undefined) return noWebhook;
  if (!deliveries.ok) return failedPage(title, deliveries.problem);
  return {
    title,
    main: html`${factsOfWebhook(found.value, nowMs)}
      <p><a href="/console/audit?target=${id}">What was changed about it</a></p>
      ${
        canChange
          ? html`<p class="actions">
              <a class="button" href="/console/webhooks/${id}/change">Change it</a>
              <a class="button" href="/console/webhooks/${id}/remove">Remove it</a>
            </p>`
          : undefined
      }
      ${tableOf<Delivery>(
        "Messages, the latest first",
        deliveries.value.deliveries,
        [
          { title: "Made", value: ({ created_at: at }) => agoOf(at, nowMs) },
          { title: "Event", value: ({ event }) => event },
          { title: "Status", value: ({ status }) => status },
          { title: "About", value: ({ subject }) => subject },
          { title: "State", value: stateOfDelivery },
          { title: "Attempts", value: ({ attempts }) => attempts, isNumber: true },
          { title: "HTTP status", value: ({ http_status: status }) => textOf(status), isNumber: true },
          { title: "Next attempt", value: ({ next_attempt_at: at }) => at?.slice(0, 19).replace("T", " ") },
          { title: "Last error", value: ({ last_error: error }) => error },
        ],
        "Nothing was sent to it yet.",
      )}
      ${nextLink(view, deliveries.value.next_page_token)} ${canChange ? testForm(view) : undefined}`,
  };
}

const textOf = (number: number | null): string | null => (number === null ? null : String(number));

const factsOfWebhook = (webhook: Webhook, nowMs: number): Markup =>
  factsOf([
    ["Address", html`${originOf(webhook)} <span class="soft">without its path</span>`],
    ["State", stateOf(webhook)],
    ["Failing since", whenOf(webhook.failing_since, nowMs)],
    ["Last error", webhook.last_error],
    ["Events", eventsOf(webhook)],
    ["Thresholds", thresholdsOf(webhook)],
    ["Fires after", `${webhook.for_s} s`],
    ["Resolved after", `${webhook.resolve_s} s`],
    ["Delivered", webhook.delivered],
    ["Failed attempts", webhook.failed_attempts],
    ["Given up", webhook.given_up],
    ["Waiting", webhook.queued],
    ["The oldest of them", whenOf(webhook.oldest_queued_at, nowMs)],
    ["Added", whenOf(webhook.created_at, nowMs)],
    ["Changed", whenOf(webhook.updated_at, nowMs)],
  ]);

const thresholdsOf = ({ thresholds }: Webhook): string =>
  thresholdNames
    .flatMap((name) => (thresholds[name] === undefined ? [] : [`${name} ${thresholds[name]}`]))
    .join(", ") || "default";

const stateOfDelivery = ({ state }: Delivery): Markup => {
  const [kind, text] = {
    delivered: ["good", "DELIVERED"],
    pending: ["warn", "WAITING"],
    given_up: ["bad", "GIVEN UP"],
  }[state] as [string, string];
  return html`<span class="state ${kind}">${text}</span>`;
};
