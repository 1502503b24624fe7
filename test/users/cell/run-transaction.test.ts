import { setTimeout } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import {
  requireOpen,
  runTransaction,
  type TransactionMark,
} from "../../../src/users/cell/run-transaction.ts";

const lost = new Error("the connection was lost");
const isAbort = (error: unknown): boolean => error instanceof RangeError;

/** The mark of a database, which a transaction loses if it ends early. */
const marked = (its: Partial<TransactionMark<object>> = {}): TransactionMark<object> => ({
  set: async () => {},
  isGone: async () => false,
  undoneBy: () => undefined,
  ...its,
});
const mark = marked();

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
      mark,
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
  expect(
    await runTransaction({ transaction: async () => Promise.reject(lost), body, mark, isAbort }),
  ).toEqual({
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
  expect(
    await runTransaction({ transaction, body: async () => Promise.reject(cause), mark, isAbort }),
  ).toEqual({
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
  expect(await runTransaction({ transaction, body: async () => 1, mark, isAbort })).toEqual({ kind, error });
});

test("returns the value of a committed body", async () => {
  const driver = fakeDriver();
  expect(
    await runTransaction({ transaction: driver.transaction, body: async () => 7, mark, isAbort }),
  ).toEqual({
    kind: "committed",
    value: 7,
  });
  expect(driver.ends).toEqual(["COMMIT"]);
});

describe("at the end of the body", () => {
  const gone = marked({ isGone: async () => true });
  const fails = async (): Promise<never> => Promise.reject(new TypeError("of the body"));
  const run = async (body: () => Promise<number>, its: TransactionMark<object>) => {
    const driver = fakeDriver();
    const ran = await runTransaction({ transaction: driver.transaction, body, mark: its, isAbort });
    expect(driver.ends).toEqual(["ROLLBACK"]);
    return ran;
  };

  test.each([
    { how: "returns", body: async () => 7, cause: undefined },
    { how: "throws", body: fails, cause: new TypeError("of the body") },
  ])("a lost mark means that a body which $how has ended its transaction", async ({ body, cause }) => {
    const ran = await run(body, gone);
    expect(ran).toMatchObject({ kind: "ended", error: { code: "TRANSACTION_ENDED", outcomeKnown: false } });
    expect((ran as { error: Error }).error.cause).toEqual(cause);
  });

  test("the mark is not looked for if the error shows that the database undid everything", async () => {
    const undone = marked({
      isGone: async () => expect.fail("was called"),
      undoneBy: (_, error) => new RangeError("undone", { cause: error }),
    });
    const error = new RangeError("undone", { cause: new TypeError("of the body") });
    expect(await run(fails, undone)).toEqual({ kind: "rolled_back", error });
  });

  test("a mark that cannot be set is a rollback, and the body does not run", async () => {
    const unset = marked({ ...gone, set: async () => Promise.reject(lost) });
    const body = async (): Promise<never> => expect.fail("was called");
    expect(await run(body, unset)).toEqual({ kind: "rolled_back", error: lost });
  });

  test("a mark that cannot be read leaves the error of the body", async () => {
    const unreadable = marked({ isGone: async () => Promise.reject(lost) });
    expect(await run(fails, unreadable)).toEqual({
      kind: "rolled_back",
      error: new TypeError("of the body"),
    });
    expect(await run(async () => 7, unreadable)).toEqual({ kind: "rolled_back", error: lost });
  });
});
