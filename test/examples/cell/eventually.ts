import { expect } from "vitest";

/** Far more than anything takes; nothing waits for it to pass. */
export const TIMEOUT_MS = 60_000;

/** Looks again and again until it is so. */
export const eventually = <T>(look: () => T) => expect.poll(look, { timeout: TIMEOUT_MS });
