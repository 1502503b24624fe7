import type { WebhookHosts } from "../../../config.ts";
import type { Secrets } from "../../../auth/secrets.ts";
import { webhookSignature } from "../../../auth/webhook-signature.ts";
import type { WallClock } from "../../../runtime.ts";
import { addressFault } from "./address.ts";

/** What came of one attempt. The texts are ours: neither a receiver's answer nor an address is in them. */
export interface Attempt {
  isDelivered: boolean;
  /** Whether another attempt is pointless. */
  isGone: boolean;
  isTimeout: boolean;
  httpStatus: number | null;
  error: string | null;
}

export interface Sender {
  secrets: Secrets;
  clock: WallClock;
  hosts: WebhookHosts;
  timeoutMs: number;
  /** Tests pass their own. */
  fetch: typeof globalThis.fetch;
}

interface Message {
  webhookId: string;
  url: string;
  messageId: string;
  body: string;
}

/**
 * Makes one attempt to deliver a message. It follows no redirects, and ignores the body of the answer. Only a
 * status from 200 to 299 is a success.
 */
export async function send(sender: Sender, { webhookId, url, messageId, body }: Message): Promise<Attempt> {
  const { clock, secrets, hosts, timeoutMs } = sender;
  // The setting may have changed since the endpoint was added.
  if (addressFault(url, hosts) !== undefined) return failed(null, "the address is not allowed here");
  const timestampS = Math.floor(clock.now() / 1_000);
  const signature = await webhookSignature(secrets, { webhookId, messageId, timestampS, body });
  const abort = new AbortController();
  const work = (async (): Promise<Attempt> => {
    const answer = await sender.fetch(url, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        "user-agent": "leasehold-webhooks",
        "webhook-id": messageId,
        "webhook-timestamp": String(timestampS),
        "webhook-signature": signature,
      },
      body,
      redirect: "manual",
      signal: abort.signal,
    });
    // Nothing of the body is read. Whether it can be cancelled makes no difference.
    answer.body?.cancel().catch(() => {});
    return outcomeOf(answer.status);
  })().catch(() => failed(null, "no connection, or it broke off"));
  const { promise: timeout, resolve } = Promise.withResolvers<Attempt>();
  const cancel = clock.after(timeoutMs, () =>
    resolve({ ...failed(null, `no answer within ${timeoutMs} ms`), isTimeout: true }),
  );
  const attempt = await Promise.race([work, timeout]);
  cancel();
  abort.abort();
  return attempt;
}

function outcomeOf(status: number): Attempt {
  if (status >= 200 && status < 300)
    return { isDelivered: true, isGone: false, isTimeout: false, httpStatus: status, error: null };
  if (status >= 300 && status < 400) return failed(status, `a redirect (${status}), which is not followed`);
  return { ...failed(status, `the answer ${status}`), isGone: status === 410 };
}

const failed = (httpStatus: number | null, error: string): Attempt => ({
  isDelivered: false,
  isGone: false,
  isTimeout: false,
  httpStatus,
  error,
});
