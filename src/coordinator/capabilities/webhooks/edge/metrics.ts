import { ok, type Result } from "../../../kernel/refusal.ts";
import type { Database } from "../../../d1/database.ts";
import { counter, familiesOf, gauge, type ProjectionMetrics } from "../../metrics/edge/family.ts";
import { listWebhooks } from "./store.ts";

interface WebhookMetrics {
  id: string;
  isEnabled: boolean;
  delivered: number;
  failedAttempts: number;
  givenUp: number;
  waiting: number;
  /** 0: no message waits. */
  oldestAgeMs: number;
  /** 0: the last attempt has not failed. */
  failingMs: number;
}

interface Webhooks {
  webhooks: readonly WebhookMetrics[];
}

declare module "../../metrics/edge/family.ts" {
  interface ProjectionMetrics extends Webhooks {}
}

export async function readD1(database: Database, nowMs: number): Promise<Result<Webhooks>> {
  const webhooks = await listWebhooks(database);
  if (!webhooks.ok) return webhooks;
  return ok({
    webhooks: webhooks.value.map((each) => ({
      id: each.webhookId,
      isEnabled: each.isEnabled,
      delivered: each.delivered,
      failedAttempts: each.failedAttempts,
      givenUp: each.givenUp,
      waiting: each.queued,
      oldestAgeMs: ageOf(each.oldestMs, nowMs),
      failingMs: ageOf(each.failingSinceMs, nowMs),
    })),
  });
}

const ageOf = (atMs: number | null, nowMs: number): number => (atMs === null ? 0 : Math.max(0, nowMs - atMs));

/** The label is the id of the webhook. Its address may be a secret. */
const ofEach =
  (value: (of: WebhookMetrics) => number) =>
  ({ webhooks }: ProjectionMetrics) =>
    webhooks.map((of) => [{ webhook: of.id }, value(of)] as const);

export const families = familiesOf("d1", null, {
  leasehold_webhook_enabled: gauge(
    "1 if the webhook is sent messages, 0 if it is disabled.",
    ofEach(({ isEnabled }) => Number(isEnabled)),
    "webhook",
  ),
  leasehold_webhook_attempts: counter(
    "Attempts to send messages to the webhook since it was added, by result: delivered or failed.",
    (of) =>
      of.webhooks.flatMap(
        ({ id: webhook, delivered, failedAttempts }) =>
          [
            [{ webhook, result: "delivered" }, delivered],
            [{ webhook, result: "failed" }, failedAttempts],
          ] as const,
      ),
    "webhook",
    "result",
  ),
  leasehold_webhook_messages_given_up: counter(
    "Messages to the webhook that were given up since it was added.",
    ofEach(({ givenUp }) => givenUp),
    "webhook",
  ),
  leasehold_webhook_messages_waiting: gauge(
    "Messages that wait to be sent to the webhook.",
    ofEach(({ waiting }) => waiting),
    "webhook",
  ),
  leasehold_webhook_oldest_message_age_seconds: gauge(
    "The age of the oldest of these messages. 0 if there is none.",
    ofEach(({ oldestAgeMs }) => oldestAgeMs / 1_000),
    "webhook",
  ),
  leasehold_webhook_failing_seconds: gauge(
    "How long ago the first of the failed attempts since the last success was. 0 if there is none.",
    ofEach(({ failingMs }) => failingMs / 1_000),
    "webhook",
  ),
});
