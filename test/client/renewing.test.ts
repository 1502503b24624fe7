import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Answer } from "../../src/client/answer.ts";
import { whileRenewing } from "../../src/client/renewing.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const renewed: Answer<unknown> = { kind: "ok", value: null };
const decided: Answer<unknown> = {
  kind: "refused",
  status: 412,
  code: "FAILED_PRECONDITION",
  reason: "LEASE_ROLLED_BACK",
  detail: "the lease is already rolled back",
  conflicts: [],
  retryable: false,
  outcomeKnown: true,
};

/** Work that ends when the test says so. */
function working() {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  let signal: AbortSignal | undefined;
  const work = (given: AbortSignal): Promise<string> => {
    signal = given;
    return promise;
  };
  return { work, resolve, reject, signal: () => signal };
}

test("[C8] renews while the work goes on, with the reason of then, and no longer", async () => {
  const { work, resolve } = working();
  const reasons: string[] = [];
  let rows = 0;
  const done = whileRenewing(
    async (reason) => {
      reasons.push(reason);
      return renewed;
    },
    { reason: () => `${rows} rows`, everyMs: 1_000 },
    work,
  );
  await vi.advanceTimersByTimeAsync(1_000);
  rows = 5;
  await vi.advanceTimersByTimeAsync(1_000);
  resolve("the end");
  expect(await done).toBe("the end");
  await vi.advanceTimersByTimeAsync(10_000);
  expect(reasons).toEqual(["0 rows", "5 rows"]);
  expect(vi.getTimerCount()).toBe(0);
});

test("an unknown outcome does not end the renewals, a decided lease aborts the work", async () => {
  const { work, reject, signal } = working();
  const answers: Answer<unknown>[] = [
    { kind: "unknown", code: "UNAVAILABLE", detail: "lost", cause: undefined } as unknown as Answer<unknown>,
    decided,
  ];
  const done = whileRenewing(async () => answers.shift() ?? renewed, { reason: "x", everyMs: 1_000 }, work);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(signal()?.aborted).toBe(false);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(signal()?.aborted).toBe(true);
  expect(signal()?.reason).toMatchObject({ code: "FAILED_PRECONDITION", reason: "LEASE_ROLLED_BACK" });
  expect(vi.getTimerCount()).toBe(0);
  reject(new Error("stopped"));
  await expect(done).rejects.toThrow("stopped");
});

test("a work that fails ends the renewals, also one under way", async () => {
  const { work, reject, signal } = working();
  const { promise, resolve } = Promise.withResolvers<Answer<unknown>>();
  const done = whileRenewing(() => promise, { reason: "x", everyMs: 1_000 }, work);
  await vi.advanceTimersByTimeAsync(1_000);
  reject(new Error("the import failed"));
  await expect(done).rejects.toThrow("the import failed");
  resolve(decided);
  await vi.advanceTimersByTimeAsync(5_000);
  expect(signal()?.aborted).toBe(false);
  expect(vi.getTimerCount()).toBe(0);
});
