import * as z from "zod";
import { thresholdTable, webhookEvents, type Threshold } from "./events.ts";
import {
  nextPageToken,
  nothing,
  pageSize,
  pageToken,
  reason,
  time,
  wholeNumber,
} from "../../../api/contract/fields.ts";
import { boundedList } from "../../../api/contract/lists.ts";
import { route, type RouteError } from "../../../api/contract/route.ts";

const operator = ["operator"] as const;
const readers = ["operator", "viewer"] as const;
const webhookId = z
  .string()
  .regex(/^[\w-]{1,64}$/, "must be a webhook id: 1 to 64 letters, digits, `_` or `-`")
  .meta({ description: "The id of the webhook." });

const params = z.strictObject({ id: webhookId });

const url = z
  .string()
  .max(2_048)
  .refine(isAddress, "must be an https URL without credentials, query or fragment")
  .meta({
    description:
      "Where messages are sent: an https URL. Its host must be public, unless the coordinator runs with " +
      "`LEASEHOLD_WEBHOOK_HOSTS=any`.",
    examples: ["https://hooks.example.com/leasehold"],
  });

function isAddress(text: string): boolean {
  return (
    /^https?:\/\/[^\s\\?#@]+$/i.test(text) &&
    !/\p{Cc}/u.test(text) &&
    text.isWellFormed() &&
    URL.canParse(text)
  );
}

const event = z.enum(webhookEvents).meta({ description: "What the endpoint is told of." });

const events = boundedList(event, webhookEvents.length, {
  min: 1,
  description: "The events that the endpoint is told of. Left out when it is added: all of them.",
});

const threshold = (name: Threshold) => {
  const { default: usual, min, max, about } = thresholdTable[name];
  return z
    .int()
    .min(min)
    .max(max)
    .optional()
    .meta({ description: `${about} ${usual} by default.` });
};

const thresholds = z
  .strictObject({
    stale_leases: threshold("stale_leases"),
    cell_silent: threshold("cell_silent"),
    cell_drift: threshold("cell_drift"),
    credential_expiring: threshold("credential_expiring"),
  })
  .meta({ id: "WebhookThresholds", description: "The thresholds that are not the default ones." });

const holdTime = (description: string) => z.int().min(0).max(86_400).meta({ description });

const settings = {
  events,
  thresholds,
  for_s: holdTime("How many seconds a condition must hold before it fires. 300 by default."),
  resolve_s: holdTime("How many seconds it must not hold before it is resolved. 300 by default."),
  enabled: z.boolean().meta({ description: "False: nothing is evaluated or sent for this endpoint." }),
};

const webhook = z
  .strictObject({
    id: webhookId,
    url: z.string().meta({
      description:
        "Where messages are sent. A viewer sees only its origin, because its path may be a secret.",
    }),
    ...settings,
    created_at: time,
    updated_at: time,
    failing_since: time.nullable().meta({
      description: "The first of the failed attempts since the last success. Null: the last one succeeded.",
    }),
    last_error: z.string().nullable().meta({ description: "Why the last attempt failed." }),
    delivered: wholeNumber.meta({ description: "Messages that were delivered." }),
    failed_attempts: wholeNumber.meta({ description: "Attempts that failed." }),
    given_up: wholeNumber.meta({ description: "Messages that were given up." }),
    queued: wholeNumber.meta({ description: "Messages that wait." }),
    oldest_queued_at: time.nullable().meta({ description: "When the oldest of them was made." }),
  })
  .meta({ id: "Webhook", description: "An endpoint that is told of events, without its secret." });

const delivery = z
  .strictObject({
    message_id: z.string().meta({ description: "The `webhook-id` of the message, in every attempt." }),
    event: z.enum([...webhookEvents, "test"]),
    status: z.enum(["firing", "resolved", "test"]),
    subject: z.string().meta({ description: "A cell, a key or a part by its id, or `cron` or `test`." }),
    state: z.enum(["pending", "delivered", "given_up"]),
    attempts: wholeNumber,
    created_at: time,
    next_attempt_at: time.nullable().meta({ description: "Not before this time. Null: there is none." }),
    finished_at: time.nullable(),
    http_status: z.int().nullable().meta({ description: "Of the last answer. Null: there was none." }),
    last_error: z.string().nullable(),
  })
  .meta({ id: "WebhookDelivery", description: "A message to an endpoint." });

const exampleId = "01936f6e-2c1a-7c3e-9d56-3a1f0c9b7e42";
const exampleWebhook = {
  id: exampleId,
  url: "https://hooks.example.com/leasehold",
  events: [...webhookEvents],
  thresholds: {},
  for_s: 300,
  resolve_s: 300,
  enabled: true,
  created_at: "2026-11-20T12:00:00.000Z",
  updated_at: "2026-11-20T12:00:00.000Z",
  failing_since: null,
  last_error: null,
  delivered: 12,
  failed_attempts: 1,
  given_up: 0,
  queued: 0,
  oldest_queued_at: null,
};

const unknownWebhook: RouteError = { code: "NOT_FOUND", when: "There is no webhook with this id." };
const d1Down: RouteError = {
  code: "UNAVAILABLE",
  when: "D1 cannot be reached. Read the list, then repeat the call.",
};
const changedMeanwhile: RouteError = {
  code: "FAILED_PRECONDITION",
  reason: "CONCURRENT_CHANGE",
  when: "Somebody else changed the webhook at the same moment. Nothing was done.",
};

const oneWebhook = z.strictObject({ webhook });

export const webhookRoutes = {
  listWebhooks: route({
    group: "webhooks",
    method: "GET",
    path: "/v1/admin/webhooks",
    summary: "List webhooks",
    about: "Lists the endpoints that are told of events, the oldest first. Their secrets are not stored.",
    roles: readers,
    params: nothing,
    query: nothing,
    responses: {
      200: {
        about: "All webhooks.",
        schema: z.strictObject({ webhooks: z.array(webhook) }),
        example: { webhooks: [exampleWebhook] },
      },
    },
    errors: [d1Down],
    example: {},
  }),
  addWebhook: route({
    group: "webhooks",
    method: "POST",
    path: "/v1/admin/webhooks",
    summary: "Add a webhook",
    about:
      "Adds an endpoint. Only this answer contains the secret with which the endpoint verifies signatures, " +
      "so save it. Messages follow the Standard Webhooks specification.",
    roles: operator,
    params: nothing,
    query: nothing,
    body: {
      schema: z
        .strictObject({
          url,
          events: events.optional(),
          thresholds: thresholds.optional(),
          for_s: settings.for_s.optional(),
          resolve_s: settings.resolve_s.optional(),
          enabled: settings.enabled.optional(),
          reason: reason.optional(),
        })
        .meta({ id: "NewWebhook" }),
      required: true,
    },
    responses: {
      201: {
        about: "The new webhook.",
        schema: z.strictObject({
          webhook,
          secret: z.string().meta({ description: "It is shown only here and stored nowhere." }),
        }),
        example: { webhook: exampleWebhook, secret: "whsec_…" },
      },
    },
    errors: [
      { code: "RESOURCE_EXHAUSTED", when: "The deployment has reached its limit of webhooks (`webhooks`)." },
      d1Down,
    ],
    example: { body: { url: "https://hooks.example.com/leasehold" } },
  }),
  changeWebhook: route({
    group: "webhooks",
    method: "PATCH",
    path: "/v1/admin/webhooks/{id}",
    summary: "Change a webhook",
    about: "Changes what is given. `thresholds` replaces all thresholds. The secret stays.",
    roles: operator,
    params,
    query: nothing,
    body: {
      schema: z
        .strictObject({
          url: url.optional(),
          events: events.optional(),
          thresholds: thresholds.optional(),
          for_s: settings.for_s.optional(),
          resolve_s: settings.resolve_s.optional(),
          enabled: settings.enabled.optional(),
          reason: reason.optional(),
        })
        .refine(
          (change) =>
            Object.entries(change).some(([field, value]) => field !== "reason" && value !== undefined),
          "must have at least one setting to change",
        )
        .meta({ id: "WebhookChange" }),
      required: true,
    },
    responses: {
      200: { about: "The changed webhook.", schema: oneWebhook, example: { webhook: exampleWebhook } },
    },
    errors: [unknownWebhook, changedMeanwhile, d1Down],
    example: { params: { id: exampleId }, body: { thresholds: { stale_leases: 10 } } },
  }),
  removeWebhook: route({
    group: "webhooks",
    method: "POST",
    path: "/v1/admin/webhooks/{id}/remove",
    summary: "Remove a webhook",
    about: "Removes an endpoint with its messages, also those that were not delivered.",
    roles: operator,
    params,
    query: nothing,
    body: {
      schema: z.strictObject({ reason: reason.optional() }).meta({ id: "WebhookRemoval" }),
      required: false,
    },
    responses: {
      200: { about: "The webhook as it was.", schema: oneWebhook, example: { webhook: exampleWebhook } },
    },
    errors: [unknownWebhook, changedMeanwhile, d1Down],
    example: { params: { id: exampleId } },
  }),
  testWebhook: route({
    group: "webhooks",
    method: "POST",
    path: "/v1/admin/webhooks/{id}/test",
    summary: "Send a test message",
    about: "Sends a test message at once, also to a disabled endpoint, and does not repeat it.",
    roles: operator,
    params,
    query: nothing,
    body: {
      schema: z.strictObject({ reason: reason.optional() }).meta({ id: "WebhookTest" }),
      required: false,
    },
    responses: {
      200: {
        about: "What came of it.",
        schema: z.strictObject({ delivery }),
        example: {
          delivery: {
            message_id: "msg_0b0e8a52-5c0f-4b5e-9a35-2f0c8a1d7e11_test",
            event: "test",
            status: "test",
            subject: "test",
            state: "delivered",
            attempts: 1,
            created_at: "2026-11-20T12:00:00.000Z",
            next_attempt_at: null,
            finished_at: "2026-11-20T12:00:00.000Z",
            http_status: 204,
            last_error: null,
          },
        },
      },
    },
    errors: [unknownWebhook, changedMeanwhile, d1Down],
    example: { params: { id: exampleId } },
  }),
  listDeliveries: route({
    group: "webhooks",
    method: "GET",
    path: "/v1/admin/webhooks/{id}/deliveries",
    summary: "List messages",
    about: "Lists the messages to an endpoint, the latest first: those that wait, and the last 100 others.",
    roles: readers,
    params,
    query: z.strictObject({ page_size: pageSize.optional(), page_token: pageToken.optional() }),
    responses: {
      200: {
        about: "A page of messages.",
        schema: z.strictObject({ deliveries: z.array(delivery), next_page_token: nextPageToken }),
      },
    },
    errors: [unknownWebhook, d1Down],
    example: { params: { id: exampleId } },
  }),
};
