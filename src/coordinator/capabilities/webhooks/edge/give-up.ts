import { and, eq, lte, sql } from "drizzle-orm";
import type { Limits } from "../../../../common/limits.ts";
import { ok, type Result } from "../../../kernel/refusal.ts";
import type { CronRun } from "../../../cron/cron-run.ts";
import { runBatch } from "../../../d1/database.ts";
import { webhookDeliveries } from "../../../d1/schema.ts";
import { pruneMessages } from "./prune-messages.ts";

/** Messages that were made at this time or before it are too old to be sent. */
export const expiryOf = ({ webhookRetryS }: Pick<Limits, "webhookRetryS">, nowMs: number): number =>
  nowMs - webhookRetryS * 1_000;

/**
 * Gives up messages that are too old to be sent, because their endpoint was disabled or the cron did not run.
 * Those that another run sends now are left to it.
 */
export async function giveUpOld({ database, limits, runtime }: CronRun): Promise<Result<null>> {
  const nowMs = runtime.clock.now();
  const expiryMs = expiryOf(limits, nowMs);
  const found = await database.run("read old messages", (orm) =>
    orm
      .selectDistinct({ webhookId: webhookDeliveries.webhookId })
      .from(webhookDeliveries)
      .where(
        and(
          eq(webhookDeliveries.state, "pending"),
          lte(webhookDeliveries.createdAtMs, expiryMs),
          lte(webhookDeliveries.claimedUntilMs, nowMs),
        ),
      ),
  );
  if (!found.ok) return found;
  for (const { webhookId } of found.value) {
    const old = sql`
      webhook_id = ${webhookId} AND state = 'pending' AND created_at_ms <= ${expiryMs}
      AND claimed_until_ms <= ${nowMs}`;
    const givenUp = await database.run(
      "give up messages",
      (orm) =>
        runBatch(orm, [
          sql`
            UPDATE webhooks SET given_up = given_up + (SELECT count(*) FROM webhook_deliveries WHERE ${old})
            WHERE webhook_id = ${webhookId}`,
          sql`
            UPDATE webhook_deliveries SET state = 'given_up', finished_at_ms = ${nowMs},
              last_error = coalesce(last_error, 'too old to be sent')
            WHERE ${old}`,
          pruneMessages(webhookId),
        ]),
      3,
    );
    if (!givenUp.ok) return givenUp;
  }
  return ok(null);
}
