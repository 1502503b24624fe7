import { sql } from "drizzle-orm";

/** The finished messages of an endpoint that are kept for operators. */
const KEPT_MESSAGES = 100;

/** Deletes all but the latest finished messages of an endpoint. */
export const pruneMessages = (webhookId: string) => sql`
  DELETE FROM webhook_deliveries WHERE message_id IN (
    SELECT message_id FROM webhook_deliveries
    WHERE webhook_id = ${webhookId} AND state <> 'pending'
    ORDER BY created_at_ms DESC, message_id DESC LIMIT -1 OFFSET ${KEPT_MESSAGES}
  )`;
