import { webhookEvents, thresholdTable, type Threshold } from "../../capabilities/webhooks/edge/events.ts";
import { webhookState } from "../../../common/status/webhook-state.ts";
import type { AnswerOf, Answer, InternalApi } from "../../api/internal-api.ts";
import type { Page } from "../layout.ts";
import { html, type Markup, type Part } from "../markup.ts";
import { tableOf } from "../table.ts";
import {
  agoOf,
  factsOf,
  failedPage,
  nextLink,
  whenOf,
  reasonField,
  type View,
  type Outcome,
} from "../view.ts";

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

type Webhook = AnswerOf<"listWebhooks">["webhooks"][number];

const thresholdNames = Object.keys(thresholdTable) as Threshold[];

/** What is typed to confirm a change. Ids begin with a time, so their ends differ most. */
const TYPED_CHARS = 8;

/** Undefined: there is none. */
async function findWebhook(api: InternalApi, id: string): Promise<Answer<Webhook | undefined>> {
  const listed = await api.call("listWebhooks");
  return listed.ok ? { ok: true, value: listed.value.webhooks.find((each) => each.id === id) } : listed;
}

const noWebhook: Page = {
  title: "No such webhook",
  status: 404,
  main: html`<p class="panel">
    There is no webhook with this id. <a href="/console/webhooks">All webhooks</a>
  </p>`,
};

const addForm = ({ formToken }: View): Markup =>
  html`<h2>Add a webhook</h2>
    <form class="stack panel" method="post" action="/console/webhooks">
      <input type="hidden" name="token" value="${formToken}" />
      ${addressField("Its path may be a secret, so no page shows it.", true)} ${settingFields(undefined)}
      ${reasonField()}
      <button class="primary">Add the webhook</button>
    </form>`;

/** The answer is the only page that ever has the secret. */
export async function addWebhook({ api, input }: View): Promise<Page> {
  const added = await api.call("addWebhook", {
    body: { url: input.get("url")?.trim() ?? "", ...settingsIn(input), reason: input.get("reason") ?? "" },
  });
  if (!added.ok) return failedPage("No webhook was added", added.problem);
  const { secret, webhook } = added.value;
  return {
    title: "The new webhook",
    main: html`<p class="panel warn" role="status">
        Copy the secret now. It is shown only here, and stored nowhere. The endpoint needs it to verify
        signatures.
      </p>
      <p class="secret"><code>${secret}</code></p>
      ${factsOf([
        ["Id", html`<a class="id" href="/console/webhooks/${webhook.id}">${webhook.id}</a>`],
        ["Address", html`${new URL(webhook.url).origin} <span class="soft">without its path</span>`],
      ])}
      <p><a href="/console/webhooks/${webhook.id}">Send it a test message</a></p>`,
  };
}

const testForm = ({ formToken, rest }: View): Markup =>
  html`<h2>Send a test message</h2>
    <form class="stack panel" method="post" action="/console/webhooks/${rest[0]}">
      <input type="hidden" name="token" value="${formToken}" />
      ${reasonField()}
      <button>Send a test message</button>
    </form>`;

export async function testWebhook({ api, input, rest }: View): Promise<Page> {
  const [id = ""] = rest;
  const body = { reason: input.get("reason") ?? "" };
  const tested = await api.call("testWebhook", { params: { id }, body });
  if (!tested.ok) return failedPage("No test message was sent", tested.problem);
  const { state, http_status: status, last_error: error } = tested.value.delivery;
  const isDelivered = state === "delivered";
  return {
    title: isDelivered ? "The test message was delivered" : "The test message was not delivered",
    main: html`<p class="panel ${isDelivered ? "good" : "bad"}" role="status">
        ${isDelivered ? `The endpoint answered with HTTP ${status}.` : (error ?? "The reason is not known.")}
      </p>
      <p><a href="/console/webhooks/${id}">Back to the webhook</a></p>`,
  };
}

export const changePage = (view: View): Promise<Page> =>
  formPage(
    view,
    "Change",
    (webhook) =>
      html`${addressField("Leave it empty to keep the address.", false)} ${settingFields(webhook)}
        <input type="hidden" name="seen" value="${webhook.updated_at}" />`,
    html`<button class="danger">Change the webhook</button>`,
  );

export async function changeWebhook(view: View): Promise<Outcome> {
  const { api, input, rest, canChange } = view;
  const [id = ""] = rest;
  // What a viewer sends goes to the API at once, which refuses it.
  if (canChange) {
    const found = await findWebhook(api, id);
    if (!found.ok) return failedPage("Nothing was changed", found.problem);
    if (!isTyped(view)) return mistyped(id, "change");
    if (found.value !== undefined && found.value.updated_at !== input.get("seen"))
      return nothingDone(
        html`Somebody else has changed the webhook since you opened the form.
          <a href="/console/webhooks/${id}/change">Open the form again</a>`,
      );
  }
  const url = input.get("url")?.trim() || undefined;
  const changed = await api.call("changeWebhook", {
    params: { id },
    body: { url, ...settingsIn(input), reason: input.get("reason") ?? "" },
  });
  return changed.ok
    ? { location: `/console/webhooks/${id}` }
    : failedPage("Nothing was changed", changed.problem);
}

export const removePage = (view: View): Promise<Page> =>
  formPage(
    view,
    "Remove",
    ({ queued }) =>
      html`<p>
        This also removes its messages, ${queued} of which wait. There is no undo: a webhook that is added
        again has another secret.
      </p>`,
    html`<button class="danger">Remove the webhook, which is final</button>`,
  );

export async function removeWebhook(view: View): Promise<Outcome> {
  const { api, input, rest, canChange } = view;
  const [id = ""] = rest;
  if (canChange && !isTyped(view)) return mistyped(id, "remove");
  const body = { reason: input.get("reason") ?? "" };
  const removed = await api.call("removeWebhook", { params: { id }, body });
  return removed.ok
    ? { location: "/console/webhooks" }
    : failedPage("The webhook was not removed", removed.problem);
}

/** A form about one endpoint, which a person confirms with the end of its id. */
async function formPage(
  { api, rest, formToken, canChange }: View,
  verb: "Change" | "Remove",
  fieldsOf: (webhook: Webhook) => Markup,
  button: Markup,
): Promise<Page> {
  const [id = ""] = rest;
  const title = `${verb} webhook ${id}`;
  const found = await findWebhook(api, id);
  if (!found.ok) return failedPage(title, found.problem);
  if (found.value === undefined) return noWebhook;
  const { origin } = new URL(found.value.url);
  return {
    title,
    main: html`<p>It sends to ${origin}. <a href="/console/webhooks/${id}">Back to the webhook</a></p>
      ${
        canChange
          ? html`<form
              class="stack panel"
              method="post"
              action="/console/webhooks/${id}/${verb.toLowerCase()}"
            >
              <input type="hidden" name="token" value="${formToken}" />
              ${fieldsOf(found.value)}
              <label for="typed"
                >Type the last ${TYPED_CHARS} characters of its id<input
                  id="typed"
                  name="typed_id"
                  required
                  autocomplete="off"
                  maxlength="${TYPED_CHARS}"
              /></label>
              ${reasonField()} ${button}
            </form>`
          : undefined
      }`,
  };
}

const isTyped = ({ input, rest }: View): boolean => input.get("typed_id") === rest[0]?.slice(-TYPED_CHARS);

const mistyped = (id: string, form: string): Page =>
  nothingDone(
    html`What you typed is not the end of the webhook's id.
      <a href="/console/webhooks/${id}/${form}">Go back to the form</a>`,
  );

const nothingDone = (why: Markup): Page => ({
  title: "Nothing was done",
  status: 422,
  main: html`<p class="panel" role="alert">${why}</p>`,
});

const addressField = (hint: string, isRequired: boolean): Markup =>
  html`<label for="url"
    >Address <small>${hint}</small
    ><input
      id="url"
      name="url"
      type="url"
      maxlength="2048"
      autocomplete="off"
      placeholder="https://"
      ${isRequired ? html`required` : undefined}
  /></label>`;

/** The fields of the settings, with those of an endpoint, or with the defaults. */
const settingFields = (webhook: Webhook | undefined): Markup =>
  html`<fieldset>
      <legend>Events</legend>
      ${webhookEvents.map(
        (event) =>
          html`<label class="check"
            ><input
              type="checkbox"
              name="event"
              value="${event}"
              ${webhook === undefined || webhook.events.includes(event) ? html`checked` : undefined}
            />
            ${event}</label
          >`,
      )}
    </fieldset>
    <fieldset>
      <legend>Thresholds <small>Empty: the default</small></legend>
      ${thresholdNames.map((name) => {
        const { about, default: usual, min, max } = thresholdTable[name];
        return numberField(name, html`${name} <small>${about} Default: ${usual}</small>`, {
          value: webhook?.thresholds[name],
          min,
          max,
        });
      })}
    </fieldset>
    ${numberField("for_s", html`Fires after <small>Seconds that a condition holds</small>`, {
      value: webhook?.for_s ?? 300,
      min: 0,
      max: 86_400,
    })}
    ${numberField("resolve_s", html`Resolved after <small>Seconds that it does not hold</small>`, {
      value: webhook?.resolve_s ?? 300,
      min: 0,
      max: 86_400,
    })}
    <label class="check"
      ><input
        type="checkbox"
        name="enabled"
        value="1"
        ${webhook?.enabled === false ? undefined : html`checked`}
      />
      Send messages to it</label
    >`;

const numberField = (
  name: string,
  label: Markup,
  { value, min, max }: { value: number | undefined; min: number; max: number },
): Markup =>
  html`<label for="${name}"
    >${label}<input id="${name}" name="${name}" type="number" min="${min}" max="${max}" value="${value}"
  /></label>`;

/** All settings of the form. What is no number goes to the API as text, which refuses it. */
function settingsIn(input: URLSearchParams): Record<string, unknown> {
  const numberIn = (name: string): number | string | undefined => {
    const text = input.get(name)?.trim() ?? "";
    return /^\d{1,15}$/.test(text) ? Number(text) : text || undefined;
  };
  return {
    events: input.getAll("event"),
    thresholds: Object.fromEntries(thresholdNames.map((name) => [name, numberIn(name)])),
    for_s: numberIn("for_s"),
    resolve_s: numberIn("resolve_s"),
    enabled: input.get("enabled") === "1",
  };
}
