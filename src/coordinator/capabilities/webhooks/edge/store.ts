import { and, asc, count, desc, eq, getTableColumns, sql } from "drizzle-orm";
import type { AuditedAction, AuditState } from "../../../kernel/audit-trail.ts";
import type { Limits } from "../../../../common/limits.ts";
import type { Operator } from "../../../kernel/messages.ts";
import { changedMeanwhile, ok, refused, type Result } from "../../../kernel/refusal.ts";
import { runBatch, type Database } from "../../../d1/database.ts";
import { webhookDeliveries, webhooks } from "../../../d1/schema.ts";
import { pruneMessages } from "./prune-messages.ts";
import type { Attempt } from "./send.ts";

declare module "../../../kernel/audit-trail.ts" {
  interface AuditedActions {
    add_webhook: true;
    change_webhook: true;
    remove_webhook: true;
    test_webhook: true;
  }
}

export type Webhook = typeof webhooks.$inferSelect;
export type Delivery = typeof webhookDeliveries.$inferSelect;
/** A webhook with the messages that wait for it. */
export interface QueuedWebhook extends Webhook {
  queued: number;
  oldestMs: number | null;
}

export async function listWebhooks(database: Database): Promise<Result<QueuedWebhook[]>> {
  return database.run("list webhooks", (orm) =>
    orm
      .select({
        ...getTableColumns(webhooks),
        queued: count(webhookDeliveries.messageId),
        oldestMs: sql<number | null>`min(${webhookDeliveries.createdAtMs})`.as("oldest_ms"),
      })
      .from(webhooks)
      .leftJoin(
        webhookDeliveries,
        and(eq(webhookDeliveries.webhookId, webhooks.webhookId), eq(webhookDeliveries.state, "pending")),
      )
      .groupBy(webhooks.webhookId)
      .orderBy(asc(webhooks.createdAtMs), asc(webhooks.webhookId)),
  );
}

export async function findWebhook(database: Database, webhookId: string): Promise<Result<Webhook>> {
  const found = await database.run("read webhook", (orm) =>
    orm.select().from(webhooks).where(eq(webhooks.webhookId, webhookId)),
  );
  if (!found.ok) return found;
  const [webhook] = found.value;
  return webhook === undefined ? refused("NOT_FOUND", "there is no webhook with this id") : ok(webhook);
}

interface Change {
  operator: Operator;
  auditId: string;
  atMs: number;
}

export async function addWebhook(
  database: Database,
  webhook: Webhook,
  change: Change,
  { webhooks: most }: Limits,
): Promise<Result<null>> {
  const { webhookId } = webhook;
  const made = await database.run(
    "add webhook",
    (orm) =>
      runBatch(orm, [
        sql`
          INSERT INTO webhooks (webhook_id, url, events, thresholds, for_s, resolve_s, is_enabled, version,
                                created_at_ms, updated_at_ms)
          SELECT ${webhookId}, ${webhook.url}, ${JSON.stringify(webhook.events)},
                 ${JSON.stringify(webhook.thresholds)}, ${webhook.forS}, ${webhook.resolveS},
                 ${Number(webhook.isEnabled)}, ${webhook.version}, ${webhook.createdAtMs},
                 ${webhook.updatedAtMs}
          WHERE (SELECT count(*) FROM webhooks) < ${most}
          ON CONFLICT DO NOTHING`,
        insertEntry("add_webhook", webhook, change, null, stateOf(webhook)),
        entryOf(change),
      ]),
    3,
  );
  if (!made.ok) return made;
  return isChanged(made.value)
    ? ok(null)
    : refused(
        "RESOURCE_EXHAUSTED",
        `the deployment has reached its limit of ${most} webhooks (LEASEHOLD_WEBHOOKS); remove one first`,
      );
}

/** Replaces the settings, if the webhook is still the one that the operator's change is based on (A2). */
export async function changeWebhook(
  database: Database,
  before: Webhook,
  after: Webhook,
  change: Change,
): Promise<Result<null>> {
  const isAnotherUrl = before.url !== after.url;
  const changed = await database.run(
    "change webhook",
    (orm) =>
      runBatch(orm, [
        sql`
          UPDATE webhooks SET url = ${after.url}, events = ${JSON.stringify(after.events)},
            thresholds = ${JSON.stringify(after.thresholds)}, for_s = ${after.forS},
            resolve_s = ${after.resolveS}, is_enabled = ${Number(after.isEnabled)},
            version = ${after.version}, updated_at_ms = ${after.updatedAtMs},
            failing_since_ms = iif(${Number(isAnotherUrl)}, NULL, failing_since_ms),
            last_error = iif(${Number(isAnotherUrl)}, NULL, last_error)
          WHERE webhook_id = ${after.webhookId} AND version = ${before.version}`,
        insertEntry("change_webhook", after, change, stateOf(before), stateOf(after)),
        entryOf(change),
      ]),
    3,
  );
  if (!changed.ok) return changed;
  return isChanged(changed.value) ? ok(null) : changedMeanwhile("the webhook");
}

/** Removes the webhook with its alerts and messages. */
export async function removeWebhook(
  database: Database,
  webhook: Webhook,
  change: Change,
): Promise<Result<null>> {
  const { webhookId } = webhook;
  const isRemoved = sql`NOT EXISTS (SELECT 1 FROM webhooks WHERE webhook_id = ${webhookId})`;
  const removed = await database.run(
    "remove webhook",
    (orm) =>
      runBatch(orm, [
        insertEntry("remove_webhook", webhook, change, stateOf(webhook), null),
        sql`DELETE FROM webhooks WHERE webhook_id = ${webhookId} AND version = ${webhook.version}`,
        sql`DELETE FROM webhook_alerts WHERE webhook_id = ${webhookId} AND ${isRemoved}`,
        sql`DELETE FROM webhook_deliveries WHERE webhook_id = ${webhookId} AND ${isRemoved}`,
        entryOf(change),
      ]),
    5,
  );
  if (!removed.ok) return removed;
  return isChanged(removed.value) ? ok(null) : changedMeanwhile("the webhook");
}

/**
 * Writes the audit entry in the transaction of the change (O1), if the webhook has this version in it. D1 has
 * the webhook itself, so there is no copy to wait for.
 */
const insertEntry = (
  action: AuditedAction,
  { webhookId, version }: Webhook,
  { operator, auditId, atMs }: Change,
  before: AuditState | null,
  after: AuditState | null,
) => sql`
  INSERT INTO audit (at_ms, id, part, key_id, request_id, action, target, reason, before, after)
  SELECT ${atMs}, ${auditId}, 'd1', ${operator.keyId}, ${operator.requestId}, ${action}, ${webhookId},
         ${operator.reason}, ${before && JSON.stringify(before)}, ${after && JSON.stringify(after)}
  FROM webhooks WHERE webhook_id = ${webhookId} AND version = ${version}
  ON CONFLICT DO NOTHING`;

const isChanged = (answers: readonly unknown[][]): boolean => (answers.at(-1)?.length ?? 0) > 0;

/** Whether the change was made, also by an earlier attempt whose answer was lost. */
const entryOf = ({ auditId, atMs }: Change) =>
  sql`SELECT id FROM audit WHERE at_ms = ${atMs} AND id = ${auditId}`;

/** The path of an address may be a secret, as with Slack, so the audit keeps only its origin. */
const stateOf = ({ url, events, thresholds, forS, resolveS, isEnabled }: Webhook): AuditState => ({
  origin: new URL(url).origin,
  events: [...events],
  ...thresholds,
  for_s: forS,
  resolve_s: resolveS,
  enabled: isEnabled,
});

/**
 * Stores a test message before it is sent, with its audit entry, if the webhook is still as it was read. So a
 * test is on record even if its outcome cannot be stored.
 */
export async function beginTest(
  database: Database,
  webhook: Webhook,
  { messageId, body }: Pick<Delivery, "messageId" | "body">,
  change: Change,
): Promise<Result<null>> {
  const { webhookId, version } = webhook;
  const { atMs } = change;
  const begun = await database.run(
    "begin test",
    (orm) =>
      runBatch(orm, [
        sql`
          INSERT INTO webhook_deliveries (message_id, webhook_id, event, status, subject, body, state,
                                          created_at_ms, due_at_ms, attempts, finished_at_ms, last_error)
          SELECT ${messageId}, webhook_id, 'test', 'test', 'test', ${body}, 'given_up', ${atMs}, ${atMs}, 1,
                 ${atMs}, 'the outcome was not recorded'
          FROM webhooks WHERE webhook_id = ${webhookId} AND version = ${version}
          ON CONFLICT DO NOTHING`,
        insertEntry("test_webhook", webhook, change, null, { message_id: messageId }),
        pruneMessages(webhookId),
        entryOf(change),
      ]),
    4,
  );
  if (!begun.ok) return begun;
  return isChanged(begun.value) ? ok(null) : changedMeanwhile("the webhook");
}

/** Stores what came of a test message, unless its webhook was removed meanwhile. */
export const endTest = (
  database: Database,
  messageId: string,
  { isDelivered, httpStatus, error }: Attempt,
): Promise<Result<unknown>> =>
  database.run("end test", (orm) =>
    orm
      .update(webhookDeliveries)
      .set({ state: isDelivered ? "delivered" : "given_up", httpStatus, lastError: error })
      .where(eq(webhookDeliveries.messageId, messageId)),
  );

export interface DeliveryPosition {
  atMs: number;
  id: string;
}

/** Lists messages, the latest first. */
export async function listDeliveries(
  database: Database,
  webhookId: string,
  limit: number,
  last: DeliveryPosition | undefined,
): Promise<Result<{ deliveries: Delivery[]; more: boolean }>> {
  const { createdAtMs, messageId } = webhookDeliveries;
  const found = await database.run("list deliveries", (orm) =>
    orm
      .select()
      .from(webhookDeliveries)
      .where(
        and(
          eq(webhookDeliveries.webhookId, webhookId),
          last && sql`(${createdAtMs}, ${messageId}) < (${last.atMs}, ${last.id})`,
        ),
      )
      .orderBy(desc(createdAtMs), desc(messageId))
      .limit(limit + 1),
  );
  if (!found.ok) return found;
  return ok({ deliveries: found.value.slice(0, limit), more: found.value.length > limit });
}
