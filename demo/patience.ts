import type { ClientOptions } from "../src/users/client/index.ts";

/**
 * Options for a client that must survive restarts of the coordinator and must send every begin. Only the
 * deadline ends a call, and no begin is held back.
 */
export const patience = {
  deadlineMs: 15_000,
  retries: Number.POSITIVE_INFINITY,
  backoffMs: 50,
  breaker: false,
  begins: { max: 10_000 },
} as const satisfies Partial<ClientOptions>;
