import { v7 as newTimeOrderedUuid } from "uuid";
import type * as z from "zod";
import { webhookSecret } from "../../../auth/webhook-signature.ts";
import { ok, type Result } from "../../../kernel/refusal.ts";
import { Database } from "../../../d1/database.ts";
import { addressFault } from "./address.ts";
import { webhookEvents, type Thresholds } from "./events.ts";
import { bodyOf } from "./message.ts";
import { send } from "./send.ts";
import {
  addWebhook,
  beginTest,
  changeWebhook,
  endTest,
  findWebhook,
  listDeliveries,
  listWebhooks,
  removeWebhook,
  type Delivery,
  type DeliveryPosition,
  type QueuedWebhook,
  type Webhook,
} from "./store.ts";
import { timeOf } from "../../../api/answers.ts";
import { invalid } from "../../../api/batch.ts";
import { webhookRoutes } from "./routes.ts";
import type { Deployment } from "../../../isolate/deployment.ts";
import type { Handlers } from "../../../api/handler.ts";
import { operatorOf, reasonFault } from "../../../api/operator.ts";
import { pageOf } from "../../../api/paging.ts";
import { withFailure } from "../../../isolate/reach.ts";
import { defaultRuntime } from "../../../runtime.ts";

type Bodies = (typeof webhookRoutes)["listWebhooks"]["responses"][200]["schema"];
type ApiWebhook = z.input<Bodies>["webhooks"][number];
type ApiDelivery = z.input<
  (typeof webhookRoutes)["listDeliveries"]["responses"][200]["schema"]
>["deliveries"][number];

/** Shorter than for the cron, because a person waits for the answer. */
const DATABASE_MS = 3_000;
const DEFAULT_HOLD_S = 300;

const webhookHandlers: Handlers<typeof webhookRoutes> = {
  async listWebhooks({ deployment, principal }) {
    const listed = onD1(await listWebhooks(databaseOf(deployment)));
    if (!listed.ok) return listed;
    const seen = principal.role === "operator" ? listed.value : listed.value.map(withoutPath);
    return ok({ status: 200, body: { webhooks: seen.map(toApiWebhook) } });
  },

  async addWebhook(call) {
    const { deployment, body } = call;
    const fault = faultOf(deployment, body);
    if (fault !== undefined) return fault;
    const signed = deployment.signed();
    if (!signed.ok) return signed;
    const nowMs = deployment.clock.now();
    const webhook: Webhook = {
      webhookId: newTimeOrderedUuid(),
      url: body.url,
      events: body.events ?? [...webhookEvents],
      thresholds: thresholdsOf(body.thresholds ?? {}),
      forS: body.for_s ?? DEFAULT_HOLD_S,
      resolveS: body.resolve_s ?? DEFAULT_HOLD_S,
      isEnabled: body.enabled ?? true,
      version: newTimeOrderedUuid(),
      createdAtMs: nowMs,
      updatedAtMs: nowMs,
      delivered: 0,
      failedAttempts: 0,
      givenUp: 0,
      failingSinceMs: null,
      lastError: null,
    };
    const change = changeOf(call, body.reason, nowMs);
    const added = onD1(await addWebhook(databaseOf(deployment), webhook, change, deployment.config.limits));
    if (!added.ok) return added;
    const secret = await webhookSecret(signed.value.secrets.current, webhook.webhookId);
    return ok({ status: 201, body: { webhook: toApiWebhook({ ...webhook, ...NOTHING_QUEUED }), secret } });
  },

  async changeWebhook(call) {
    const { deployment, body, params } = call;
    const fault = faultOf(deployment, body);
    if (fault !== undefined) return fault;
    const database = databaseOf(deployment);
    const found = onD1(await findQueued(database, params.id));
    if (!found.ok) return found;
    const before = found.value;
    const after: QueuedWebhook = {
      ...before,
      url: body.url ?? before.url,
      events: body.events ?? before.events,
      thresholds: body.thresholds === undefined ? before.thresholds : thresholdsOf(body.thresholds),
      forS: body.for_s ?? before.forS,
      resolveS: body.resolve_s ?? before.resolveS,
      isEnabled: body.enabled ?? before.isEnabled,
      version: newTimeOrderedUuid(),
      updatedAtMs: Math.max(deployment.clock.now(), before.updatedAtMs + 1),
      ...(body.url === undefined || body.url === before.url ? {} : { failingSinceMs: null, lastError: null }),
    };
    const change = changeOf(call, body.reason, deployment.clock.now());
    const changed = onD1(await changeWebhook(database, before, after, change));
    return changed.ok ? ok({ status: 200, body: { webhook: toApiWebhook(after) } }) : changed;
  },

  async removeWebhook(call) {
    const { deployment, body, params } = call;
    const fault = reasonFault(body?.reason, deployment.config.limits);
    if (fault !== undefined) return fault;
    const database = databaseOf(deployment);
    const found = onD1(await findQueued(database, params.id));
    if (!found.ok) return found;
    const change = changeOf(call, body?.reason, deployment.clock.now());
    const removed = onD1(await removeWebhook(database, found.value, change));
    return removed.ok ? ok({ status: 200, body: { webhook: toApiWebhook(found.value) } }) : removed;
  },

  async testWebhook(call) {
    const { deployment, body: given, params } = call;
    const fault = reasonFault(given?.reason, deployment.config.limits);
    if (fault !== undefined) return fault;
    const signed = deployment.signed();
    if (!signed.ok) return signed;
    const database = databaseOf(deployment);
    const found = onD1(await findWebhook(database, params.id));
    if (!found.ok) return found;
    const { webhookId, url } = found.value;
    const { clock, config } = deployment;
    const atMs = clock.now();
    const messageId = `msg_${newTimeOrderedUuid()}_test`;
    const text = "this is a test message, sent by an operator.";
    const body = bodyOf({ event: "test", status: "test", subject: "test", text, atMs });
    const sender = {
      secrets: signed.value.secrets,
      clock,
      hosts: config.webhookHosts,
      timeoutMs: config.limits.webhookTimeoutMs,
      fetch: (...request: Parameters<typeof fetch>) => fetch(...request),
    };
    const change = changeOf(call, given?.reason, atMs);
    const begun = onD1(await beginTest(database, found.value, { messageId, body }, change));
    if (!begun.ok) return begun;
    const attempt = await send(sender, { webhookId, url, messageId, body });
    const ended = onD1(await endTest(database, messageId, attempt));
    if (!ended.ok) return ended;
    const delivery: Omit<Delivery, "webhookId" | "body" | "claimedBy" | "claimedUntilMs"> = {
      messageId,
      event: "test",
      status: "test",
      subject: "test",
      state: attempt.isDelivered ? "delivered" : "given_up",
      createdAtMs: atMs,
      dueAtMs: atMs,
      attempts: 1,
      finishedAtMs: atMs,
      httpStatus: attempt.httpStatus,
      lastError: attempt.error,
    };
    return ok({ status: 200, body: { delivery: toApiDelivery(delivery) } });
  },

  async listDeliveries(call) {
    const page = await pageOf<DeliveryPosition>(call);
    if (!page.ok) return page;
    const { limit, position, next } = page.value;
    const database = databaseOf(call.deployment);
    const found = onD1(await findWebhook(database, call.params.id));
    if (!found.ok) return found;
    const listed = onD1(await listDeliveries(database, call.params.id, limit, position));
    if (!listed.ok) return listed;
    const { deliveries, more } = listed.value;
    const last = more ? deliveries.at(-1) : undefined;
    return ok({
      status: 200,
      body: {
        deliveries: deliveries.map(toApiDelivery),
        next_page_token: await next(last && { atMs: last.createdAtMs, id: last.messageId }),
      },
    });
  },
};

const NOTHING_QUEUED = { queued: 0, oldestMs: null };

const databaseOf = ({ env, clock, log }: Deployment): Database =>
  new Database(env, { timeoutMs: DATABASE_MS }, { ...defaultRuntime, clock, log });

/** The error of D1 is only for the log, so it is replaced here. */
const onD1 = <T>(result: Result<T>): Result<T> =>
  result.ok || result.refusal.code !== "UNAVAILABLE"
    ? result
    : withFailure(result, {
        detail: "D1 cannot be reached, so it is unknown whether anything was changed; list the webhooks",
      });

async function findQueued(database: Database, webhookId: string): Promise<Result<QueuedWebhook>> {
  const found = await findWebhook(database, webhookId);
  if (!found.ok) return found;
  const listed = await listWebhooks(database);
  if (!listed.ok) return listed;
  const { queued, oldestMs } = listed.value.find((each) => each.webhookId === webhookId) ?? NOTHING_QUEUED;
  return ok({ ...found.value, queued, oldestMs });
}

const changeOf = (
  call: Parameters<typeof operatorOf>[0],
  reason: string | undefined,
  atMs: number,
): Parameters<typeof addWebhook>[2] => ({
  operator: operatorOf(call, reason),
  auditId: newTimeOrderedUuid(),
  atMs,
});

function faultOf(
  { config }: Deployment,
  {
    url,
    events = [],
    reason,
  }: { url?: string | undefined; events?: string[] | undefined; reason?: string | undefined },
): Result<never> | undefined {
  if (new Set(events).size < events.length) return invalid("events", "must not list an event twice");
  const fault = url === undefined ? undefined : addressFault(url, config.webhookHosts);
  return fault === undefined ? reasonFault(reason, config.limits) : invalid("url", fault);
}

const thresholdsOf = (given: { [Name in keyof Thresholds]?: number | undefined }): Thresholds =>
  Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));

/** The path of an address may be a secret, as with Slack. */
const withoutPath = (webhook: QueuedWebhook): QueuedWebhook => ({
  ...webhook,
  url: new URL(webhook.url).origin,
});

const toApiWebhook = (webhook: QueuedWebhook): ApiWebhook => ({
  id: webhook.webhookId,
  url: webhook.url,
  events: [...webhook.events],
  thresholds: webhook.thresholds,
  for_s: webhook.forS,
  resolve_s: webhook.resolveS,
  enabled: webhook.isEnabled,
  created_at: timeOf(webhook.createdAtMs),
  updated_at: timeOf(webhook.updatedAtMs),
  failing_since: webhook.failingSinceMs === null ? null : timeOf(webhook.failingSinceMs),
  last_error: webhook.lastError,
  delivered: webhook.delivered,
  failed_attempts: webhook.failedAttempts,
  given_up: webhook.givenUp,
  queued: webhook.queued,
  oldest_queued_at: webhook.oldestMs === null ? null : timeOf(webhook.oldestMs),
});

const toApiDelivery = (
  delivery: Omit<Delivery, "webhookId" | "body" | "claimedBy" | "claimedUntilMs">,
): ApiDelivery => ({
  message_id: delivery.messageId,
  event: delivery.event,
  status: delivery.status,
  subject: delivery.subject,
  state: delivery.state,
  attempts: delivery.attempts,
  created_at: timeOf(delivery.createdAtMs),
  next_attempt_at: delivery.state === "pending" ? timeOf(delivery.dueAtMs) : null,
  finished_at: delivery.finishedAtMs === null ? null : timeOf(delivery.finishedAtMs),
  http_status: delivery.httpStatus,
  last_error: delivery.lastError,
});

export { webhookHandlers as handlers, webhookRoutes as routes };
