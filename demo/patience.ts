import type { ClientOptions } from "../src/client/index.ts";

/**
 * What a cell needs that must live through restarts of its coordinator, and that counts on every begin being
 * sent: only the deadline ends a call, and no begin is held back.
 */
export const patience = {
  deadlineMs: 15_000,
  retries: Number.POSITIVE_INFINITY,
  backoffMs: 50,
  breaker: false,
  begins: { max: 10_000 },
} as const satisfies Partial<ClientOptions>;
