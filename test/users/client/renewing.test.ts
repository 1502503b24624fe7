import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Answer } from "../../../src/users/client/answer.ts";
import { whileRenewing } from "../../../src/users/client/leases.ts";

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

const refusedWith = (code: string, reason?: string): Answer<unknown> => ({
  kind: "refused",
  status: 400,
  code,
  ...(reason === undefined ? {} : { reason }),
  detail: "refused",
  conflicts: [],
  retryable: false,
  outcomeKnown: true,
});

test("a refusal that says nothing of the lease does not abort the work", async () => {
  const { work, resolve, signal } = working();
  // The key may be replaced meanwhile, and the ledger reconciled.
  const answers = [
    refusedWith("UNAUTHENTICATED", "KEY_EXPIRED"),
    refusedWith("PERMISSION_DENIED"),
    refusedWith("FAILED_PRECONDITION", "HISTORY_LOST"),
    refusedWith("NOT_FOUND", "ROUTE_UNKNOWN"),
  ];
  let asked = 0;
  const renew = async (): Promise<Answer<unknown>> => answers[asked++] ?? renewed;
  const done = whileRenewing(renew, { reason: "x", everyMs: 1_000 }, work);
  await vi.advanceTimersByTimeAsync(5_000);
  expect(asked).toBe(5);
  expect(signal()?.aborted).toBe(false);
  resolve("the end");
  expect(await done).toBe("the end");
});

test("a lease that was committed needs no renewals, and its work goes on", async () => {
  const { work, resolve, signal } = working();
  let asked = 0;
  const renew = async (): Promise<Answer<unknown>> => {
    asked += 1;
    return refusedWith("FAILED_PRECONDITION", "LEASE_COMMITTED");
  };
  const done = whileRenewing(renew, { reason: "x", everyMs: 1_000 }, work);
  await vi.advanceTimersByTimeAsync(5_000);
  expect(asked).toBe(1);
  expect(signal()?.aborted).toBe(false);
  resolve("the end");
  expect(await done).toBe("the end");
});

test("a lease that its cell does not have aborts the work, and so does an invalid reason", async () => {
  for (const code of ["NOT_FOUND", "INVALID_ARGUMENT"]) {
    const { work, resolve, signal } = working();
    const done = whileRenewing(async () => refusedWith(code), { reason: "x", everyMs: 1_000 }, work);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(signal()?.reason).toMatchObject({ code });
    resolve("the end");
    await done;
  }
});

test("a reason that cannot be told aborts the work with its error, and rejects nothing else", async () => {
  const { work, resolve, signal } = working();
  const broken = new Error("no progress");
  const reason = (): string => {
    throw broken;
  };
  const done = whileRenewing(async () => renewed, { reason, everyMs: 1_000 }, work);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(signal()?.reason).toBe(broken);
  expect(vi.getTimerCount()).toBe(0);
  resolve("the end");
  expect(await done).toBe("the end");
});

test("a pause that is longer than any timer is not without a pause", async () => {
  const renew = vi.fn<() => Promise<Answer<unknown>>>(async () => renewed);
  for (const everyMs of [2 ** 31, Number.POSITIVE_INFINITY]) {
    const { work, resolve } = working();
    const done = whileRenewing(renew, { reason: "x", everyMs }, work);
    await vi.advanceTimersByTimeAsync(60_000);
    resolve("the end");
    await done;
  }
  expect(renew).not.toHaveBeenCalled();
});
