import { expect } from "vitest";

/** This is much longer than any test takes. Only a failing test waits this long. */
export const TIMEOUT_MS = 60_000;

/** Polls until the expectation holds. */
export const eventually = <T>(look: () => T) => expect.poll(look, { timeout: TIMEOUT_MS });
