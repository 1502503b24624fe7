import type { Limits } from "../../../common/limits.ts";

/**
 * How long a ledger waits for the answer to a message that waits in a queue (B11). The shard gives it after
 * `exchangeTimeoutMs` at the latest.
 */
export const waitTimeoutMs = ({ exchangeTimeoutMs, inquiryTimeoutMs }: Limits): number =>
  exchangeTimeoutMs + inquiryTimeoutMs;
