import { Hmac, type Secrets } from "./secrets.ts";

// Signatures of webhooks, as standardwebhooks.com describes them.

const PREFIX = "whsec_";

/**
 * The secret of an endpoint, as its receiver needs it. It follows from the signing secret, and is not
 * stored.
 */
export const webhookSecret = async (signingSecret: string, webhookId: string): Promise<string> =>
  PREFIX + toBase64(await secretBytes(signingSecret, webhookId));

const secretBytes = (signingSecret: string, webhookId: string): Promise<Uint8Array> =>
  new Hmac(signingSecret, "webhook secrets").sign(webhookId);

interface SignedMessage {
  webhookId: string;
  messageId: string;
  /** Seconds since 1970. */
  timestampS: number;
  body: string;
}

/**
 * The value of `webhook-signature`. While the signing secret is rotated, it has a signature for each of
 * the two secrets, so that receivers can verify it with the old secret or with the new one.
 */
export async function webhookSignature(
  { current, previous }: Secrets,
  { webhookId, messageId, timestampS, body }: SignedMessage,
): Promise<string> {
  const signatures = [current, ...(previous === undefined ? [] : [previous])].map(async (signingSecret) => {
    const hmac = new Hmac(await secretBytes(signingSecret, webhookId));
    return `v1,${toBase64(await hmac.sign(`${messageId}.${timestampS}.${body}`))}`;
  });
  return (await Promise.all(signatures)).join(" ");
}

function toBase64(bytes: Uint8Array): string {
  let binary = "";
  for (const byte of bytes) binary += String.fromCharCode(byte);
  return btoa(binary);
}
