import { setTimeout } from "node:timers/promises";
import { expect, test } from "vitest";
import { requireOpen, runTransaction } from "../../src/cell/run-transaction.ts";

const lost = new Error("the connection was lost");
const isAbort = (error: unknown): boolean => error instanceof RangeError;

/** A driver that fails when the test says so, and records how each body ended. */
function fakeDriver() {
  let fail: (error: Error) => void = () => {};
  const ends: string[] = [];
  const tx = { of: "the driver" };
  const transaction = async <T>(body: (given: typeof tx) => Promise<T>): Promise<T> =>
    new Promise<T>((resolve, reject) => {
      fail = reject;
      body(tx).then(
        (value) => {
          ends.push("COMMIT");
          resolve(value);
        },
        (error: unknown) => {
          ends.push("ROLLBACK");
          reject(error);
        },
      );
    });
  return { transaction, tx, ends, fail: () => fail(lost) };
}

test.each(["resolves", "rejects"])(
  "if the driver fails early, the result waits for the body, which %s",
  async (how) => {
    const driver = fakeDriver();
    const steps: string[] = [];
    let goOn = (): void => {};
    const blocked = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    const running = runTransaction({
      transaction: driver.transaction,
      isAbort,
      body: async (tx) => {
        requireOpen(tx);
        await blocked;
        steps.push("body");
        expect(() => requireOpen(tx)).toThrow("has ended");
        if (how === "rejects") throw new Error("of the body");
        return 1;
      },
    }).then((ran) => {
      steps.push("answer");
      return ran;
    });
    await setTimeout(1);
    driver.fail();
    await setTimeout(1);
    expect(steps).toEqual([]);
    goOn();
    expect(await running).toEqual({ kind: "rolled_back", error: lost });
    expect(steps).toEqual(["body", "answer"]);
    await setTimeout(1);
    expect(driver.ends).toEqual([]);
  },
);

test("a transaction whose BEGIN fails does not run its body", async () => {
  const body = async (): Promise<never> => expect.fail("was called");
  expect(await runTransaction({ transaction: async () => Promise.reject(lost), body, isAbort })).toEqual({
    kind: "rolled_back",
    error: lost,
  });
});

test("returns the error of the body, not that of the rollback", async () => {
  const transaction = async <T>(body: (tx: object) => Promise<T>): Promise<T> => {
    await body({}).catch(() => {});
    throw lost;
  };
  const cause = new TypeError("of the body");
  expect(await runTransaction({ transaction, body: async () => Promise.reject(cause), isAbort })).toEqual({
    kind: "rolled_back",
    error: cause,
  });
});

test.each([
  { error: new RangeError("a constraint"), kind: "rolled_back" },
  { error: lost, kind: "unknown" },
])("after COMMIT was sent, the kind of error decides: $kind", async ({ error, kind }) => {
  const transaction = async <T>(body: (tx: object) => Promise<T>): Promise<T> => {
    await body({});
    throw error;
  };
  expect(await runTransaction({ transaction, body: async () => 1, isAbort })).toEqual({ kind, error });
});

test("returns the value of a committed body", async () => {
  const driver = fakeDriver();
  expect(await runTransaction({ transaction: driver.transaction, body: async () => 7, isAbort })).toEqual({
    kind: "committed",
    value: 7,
  });
  expect(driver.ends).toEqual(["COMMIT"]);
});
