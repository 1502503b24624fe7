import { sql } from "drizzle-orm";
import { fanOut } from "../../../kernel/fan-out.ts";
import { ok, type Result } from "../../../kernel/refusal.ts";
import type { CronRun } from "../../../cron/cron-run.ts";
import { runBatch, type Statements, jsonArray } from "../../../d1/database.ts";
import type { webhookDeliveries, webhooks } from "../../../d1/schema.ts";
import { expiryOf } from "./give-up.ts";
import { pruneMessages } from "./prune-messages.ts";
import { send, type Attempt, type Sender } from "./send.ts";

type Endpoint = typeof webhooks.$inferSelect;
type Claimed = Pick<
  typeof webhookDeliveries.$inferSelect,
  "messageId" | "body" | "attempts" | "createdAtMs"
> &
  Pick<Endpoint, "url">;

/** A run delivers for this time, or for that of one attempt if that is longer. */
const DELIVERY_MS = 15_000;
/** No other run sends a message that was claimed this recently. It is longer than a run delivers. */
const CLAIM_MS = 60_000;
/** The messages of one endpoint in one run. */
const MAX_MESSAGES = 20;
/** Cloudflare lets a Worker wait for the answers of 6 requests at a time. */
const WIDTH = 6;
/** The statements of a claim, with a second attempt. */
export const CLAIM_STATEMENTS = 4;
/** The statements that record what came of the attempts, with a second attempt. */
export const RECORD_STATEMENTS = 8;
/**
 * An endpoint has this time, or that of one attempt if that is longer. So a slow one leaves time for the
 * others, and one that was removed or changed meanwhile soon gets nothing more.
 */
const ENDPOINT_MS = 5_000;

const FIRST_PAUSE_MS = 30_000;
const LONGEST_PAUSE_MS = 3_600_000;

/**
 * Delivers what is due, at least once. Endpoints that work come first, so that a dead one delays no other.
 * Each run begins with another one of them, so that each is served if a run has no time for all of them. At
 * the first failure, the other messages of an endpoint wait for the next run, so a dead one gets one request
 * per run at most.
 */
export async function deliver(run: CronRun, endpoints: readonly Endpoint[], sender: Sender): Promise<void> {
  const deadlineMs = run.runtime.clock.now() + Math.max(DELIVERY_MS, sender.timeoutMs);
  await fanOut(orderOf(endpoints, deadlineMs), WIDTH, async (endpoint) => {
    const { clock, log } = run.runtime;
    if (clock.now() >= deadlineMs || run.database.statementsLeft < CLAIM_STATEMENTS + RECORD_STATEMENTS)
      return;
    // A message that was sent can be recorded, whatever the others need meanwhile.
    const reserved = run.database.reserve(RECORD_STATEMENTS);
    const delivered = await deliverTo(run, endpoint, sender, deadlineMs, reserved);
    if (delivered.ok && delivered.value.sent > 0)
      log("webhook_run", { webhook: endpoint.webhookId, ...delivered.value });
  });
}

function orderOf(endpoints: readonly Endpoint[], nowMs: number): Endpoint[] {
  const enabled = endpoints.filter(({ isEnabled }) => isEnabled);
  const first = Math.floor(nowMs / 60_000) % Math.max(1, enabled.length);
  return [...enabled.slice(first), ...enabled.slice(0, first)].toSorted(
    (a, b) => Number(a.failingSinceMs !== null) - Number(b.failingSinceMs !== null),
  );
}

interface Sent extends Attempt {
  messageId: string;
  /** When it is tried again. Null: it is delivered or given up. */
  dueAtMs: number | null;
}

async function deliverTo(
  run: CronRun,
  { webhookId }: Endpoint,
  sender: Sender,
  deadlineMs: number,
  reserved: Statements,
): Promise<Result<{ sent: number; failed: number }>> {
  const { clock, fraction } = run.runtime;
  const claimId = run.runtime.uuid();
  const claimed = await claim(run, webhookId, claimId);
  if (!claimed.ok) return claimed;
  const sent: Sent[] = [];
  const untilMs = Math.min(deadlineMs, clock.now() + Math.max(ENDPOINT_MS, sender.timeoutMs));
  for (const { messageId, body, attempts, createdAtMs, url } of claimed.value) {
    const leftMs = untilMs - clock.now();
    if (leftMs <= 0) break;
    const timeoutMs = Math.min(sender.timeoutMs, leftMs);
    const attempt = await send({ ...sender, timeoutMs }, { webhookId, url, messageId, body });
    // An attempt that was cut short says nothing about the endpoint. The next run repeats it.
    if (attempt.isTimeout && timeoutMs < sender.timeoutMs) break;
    const nowMs = clock.now();
    const dueAtMs = nowMs + pauseOf(attempts + 1, fraction());
    const isOver = attempt.isDelivered || attempt.isGone || createdAtMs <= expiryOf(run.limits, dueAtMs);
    sent.push({ ...attempt, messageId, dueAtMs: isOver ? null : dueAtMs });
    if (!attempt.isDelivered) break;
  }
  if (claimed.value.length === 0) return ok({ sent: 0, failed: 0 });
  const recorded = await record(run, webhookId, claimId, sent, reserved);
  if (!recorded.ok) return recorded;
  return ok({ sent: sent.length, failed: sent.filter(({ isDelivered }) => !isDelivered).length });
}

/** Doubles from 30 s to an hour. Differs by up to a quarter, so that a receiver doesn't get all at once. */
function pauseOf(attempts: number, fraction: number): number {
  const pauseMs = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(attempts - 1, 20));
  return Math.round(pauseMs * (0.75 + fraction / 2));
}

/**
 * Claims messages that are due, the oldest first, and reads the address again, because the endpoint may have
 * been removed, disabled or changed since the run has read it. An attempt of this access that was carried out
 * although its answer was lost has claimed the same messages.
 */
async function claim({ database, limits, runtime }: CronRun, webhookId: string, claimId: string) {
  const nowMs = runtime.clock.now();
  const claimed = await database.run(
    "claim messages",
    (orm) =>
      runBatch(orm, [
        sql`
          UPDATE webhook_deliveries SET claimed_by = ${claimId}, claimed_until_ms = ${nowMs + CLAIM_MS}
          WHERE message_id IN (
            SELECT message_id FROM webhook_deliveries
            WHERE webhook_id = ${webhookId} AND state = 'pending' AND due_at_ms <= ${nowMs}
              AND claimed_until_ms <= ${nowMs} AND created_at_ms > ${expiryOf(limits, nowMs)}
              AND EXISTS (SELECT 1 FROM webhooks WHERE webhook_id = ${webhookId} AND is_enabled)
            ORDER BY created_at_ms, message_id LIMIT ${MAX_MESSAGES}
          )`,
        sql`
          SELECT message_id AS messageId, body, attempts, message.created_at_ms AS createdAtMs, url
          FROM webhook_deliveries AS message JOIN webhooks USING (webhook_id)
          WHERE webhook_id = ${webhookId} AND claimed_by = ${claimId} AND state = 'pending'
          ORDER BY message.created_at_ms, message_id`,
      ]),
    CLAIM_STATEMENTS / 2,
  );
  return claimed.ok ? ok((claimed.value[1] ?? []) as unknown as Claimed[]) : claimed;
}

/**
 * Stores what came of the attempts. Counting is part of the transaction and is guarded by the claim, so this
 * can be repeated. The other messages that were claimed are free again.
 */
async function record(
  { database, runtime }: CronRun,
  webhookId: string,
  claimId: string,
  sent: readonly Sent[],
  reserved: Statements,
): Promise<Result<unknown>> {
  const last = sent.at(-1);
  const release = sql`
    UPDATE webhook_deliveries SET claimed_by = NULL, claimed_until_ms = 0
    WHERE webhook_id = ${webhookId} AND state = 'pending' AND claimed_by = ${claimId}`;
  if (last === undefined)
    return database.run("release messages", (orm) => runBatch(orm, [release]), 1, reserved);
  const nowMs = runtime.clock.now();
  const json = jsonArray(sent.map((each) => ({ json: JSON.stringify(each) })));
  const open = sql`
    SELECT json_each.value FROM json_each(${json}) JOIN webhook_deliveries
      ON message_id = json_each.value ->> 'messageId' AND state = 'pending' AND claimed_by = ${claimId}`;
  const countOf = (condition: string) => sql`(SELECT count(*) FROM (${open}) WHERE ${sql.raw(condition)})`;
  return database.run(
    "record attempts",
    (orm) =>
      runBatch(orm, [
        sql`
          UPDATE webhooks SET
            delivered = delivered + ${countOf("value ->> 'isDelivered' = 1")},
            failed_attempts = failed_attempts + ${countOf("value ->> 'isDelivered' = 0")},
            given_up = given_up + ${countOf("value ->> 'isDelivered' = 0 AND value ->> 'dueAtMs' IS NULL")},
            failing_since_ms = iif(${Number(last.isDelivered)}, NULL, coalesce(failing_since_ms, ${nowMs})),
            last_error = ${last.error}
          WHERE webhook_id = ${webhookId}`,
        sql`
          UPDATE webhook_deliveries SET
            state = CASE WHEN attempt.value ->> 'isDelivered' THEN 'delivered'
                         WHEN attempt.value ->> 'dueAtMs' IS NULL THEN 'given_up' ELSE 'pending' END,
            attempts = attempts + 1,
            due_at_ms = coalesce(attempt.value ->> 'dueAtMs', due_at_ms),
            claimed_by = NULL, claimed_until_ms = 0,
            finished_at_ms = iif(attempt.value ->> 'dueAtMs' IS NULL, ${nowMs}, NULL),
            http_status = attempt.value ->> 'httpStatus', last_error = attempt.value ->> 'error'
          FROM json_each(${json}) AS attempt
          WHERE message_id = attempt.value ->> 'messageId' AND state = 'pending'
            AND claimed_by = ${claimId}`,
        release,
        pruneMessages(webhookId),
      ]),
    RECORD_STATEMENTS / 2,
    reserved,
  );
}
