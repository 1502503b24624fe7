import type { WebhookEvent } from "./events.ts";
import type { Finding } from "./rules/rule.ts";

interface Told extends Partial<Pick<Finding, "cell" | "value">> {
  event: WebhookEvent | "test";
  status: "firing" | "resolved" | "test";
  subject: string;
  text: string;
  atMs: number;
}

/**
 * The body of a message, as Standard Webhooks describe it. `text` is what receivers show that are compatible
 * with Slack.
 */
export function bodyOf({ event, status, subject, text, atMs, cell, value }: Told): string {
  const label = { firing: "Firing", resolved: "Resolved", test: "Test" }[status];
  return JSON.stringify({
    type: status === "test" ? "leasehold.test" : `leasehold.${event}.${status}`,
    timestamp: new Date(atMs).toISOString(),
    text: `[Leasehold] ${label}: ${text}`,
    data: { event, status, subject, cell_id: cell ?? null, value: value ?? null },
  });
}
