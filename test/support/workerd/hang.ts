import { beforeEach, vi } from "vitest";
import { wallClock } from "../../../src/coordinator/runtime.ts";

/** Call this once in a file that uses `hang`. */
export const watchDeadlines = (): void => beforeEach(() => void vi.spyOn(wallClock, "after"));

/**
 * A call that is never answered. Its deadline, which was set last, ends at once. So no test waits for it, and
 * none needs deadlines so short that a busy machine exceeds them elsewhere.
 */
export function hang(): Promise<never> {
  const [, end] = vi.mocked(wallClock.after).mock.lastCall ?? [];
  if (end === undefined) throw new Error("no deadline was set for this call");
  end();
  return new Promise(() => {});
}
