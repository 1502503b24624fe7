/** Tests of how a shard puts questions to a ledger into messages. */
import { expect, test } from "vitest";
import { InquiryQueue } from "../../../../src/coordinator/kernel/shard/inquiry-queue.ts";
import { executionKey, type AskedHold, type HoldRow } from "../../../../src/coordinator/kernel/shard/rows.ts";
import { DESTROY } from "../../../support/holds.ts";

const hold = (epoch: number, canonical = `name-${epoch}`): HoldRow => ({
  ...DESTROY,
  canonical,
  lease: `lease-${epoch}`,
  incarnation: 1,
  counter: epoch,
  epoch,
});

/** A queue whose messages are answered by hand, each with its number. */
function start(): { queue: InquiryQueue<number>; sent: Sent[] } {
  const sent: Sent[] = [];
  const queue = new InquiryQueue<number>((cell, holds) => {
    const { promise, resolve, reject } = Promise.withResolvers<number>();
    const number = sent.length;
    sent.push({ cell, holds, answer: () => resolve(number), fail: () => reject(new Error("revoked")) });
    return promise;
  });
  return { queue, sent };
}

interface Sent {
  cell: string;
  holds: readonly AskedHold[];
  answer: () => void;
  fail: () => void;
}

const turn = (): Promise<void> => new Promise((next) => setImmediate(next));
const namesIn = ({ holds }: Sent): string[] => holds.map(({ canonical }) => canonical ?? "");

test("[M6] [R2] questions wait for the message after the one under way, all together", async () => {
  const { queue, sent } = start();
  const first = queue.ask("1", [hold(1)]);
  const others = [queue.ask("1", [hold(1)]), queue.ask("1", [hold(1), hold(2)]), queue.ask("1", [hold(2)])];
  expect(sent.map(namesIn)).toEqual([["name-1"]]);
  sent[0]?.answer();
  expect(await first).toEqual([0]);
  await turn();
  expect(sent.map(namesIn)).toEqual([["name-1"], ["name-1", "name-2"]]);
  sent[1]?.answer();
  expect(await Promise.all(others)).toEqual([[1], [1], [1]]);
  // Nothing is under way any more, so nothing waits.
  void queue.ask("1", [hold(3)]);
  expect(sent).toHaveLength(3);
});

test("[R2] all names of an execution are in the message that asks about it", async () => {
  const { queue, sent } = start();
  void queue.ask("1", [hold(1)]);
  void queue.ask("1", [hold(2, "ada")]);
  void queue.ask("1", [hold(2, "bob"), hold(2, "ada")]);
  sent[0]?.answer();
  await turn();
  expect(sent.slice(1).map(namesIn)).toEqual([["ada", "bob"]]);
});

test("[N1] a ledger that does not answer keeps no other waiting", () => {
  const { queue, sent } = start();
  void queue.ask("1", [hold(1)]);
  void queue.ask("1", [hold(2)]);
  void queue.ask("2", [{ ...hold(3), cell: "2" }]);
  expect(sent.map(({ cell }) => cell)).toEqual(["1", "2"]);
});

test("[M6] messages and their number are limited, and every hold is in at most one", async () => {
  const { queue, sent } = start();
  const holds = (from: number, count: number): HoldRow[] =>
    Array.from({ length: count }, (_, index) => hold(from + index));
  const first = queue.ask("1", holds(1, 1));
  const large = queue.ask("1", holds(1, 2_500));
  const again = queue.ask("1", holds(1, 2_500));
  const tooLarge = queue.ask("1", holds(2_501, 10_000));
  const none = queue.ask("1", holds(20_000, 1));
  expect(await none).toEqual([]);
  for (let message = 0; message < 11; message += 1) {
    sent[message]?.answer();
    await turn();
  }
  expect(sent.map((each) => each.holds.length)).toEqual([1, ...Array.from({ length: 10 }, () => 1_000)]);
  const asked = sent.slice(1).flatMap((each) => each.holds.map(executionKey));
  expect(new Set(asked).size).toBe(10_000);
  expect(await first).toEqual([0]);
  expect(await large).toEqual([1, 2, 3]);
  expect(await again).toEqual([1, 2, 3]);
  expect(await tooLarge).toEqual([3, 4, 5, 6, 7, 8, 9, 10]);
});

test("[M6] the holds of one execution are limited like those of many", async () => {
  const { queue, sent } = start();
  void queue.ask("1", [hold(1)]);
  void queue.ask(
    "1",
    Array.from({ length: 2_500 }, (_, n) => hold(2, `n${n}`)),
  );
  for (let message = 0; message < 4; message += 1) {
    sent[message]?.answer();
    await turn();
  }
  expect(sent.map((each) => each.holds.length)).toEqual([1, 1_000, 1_000, 500]);
});

test("[B8] an error fails the calls of its message and no others", async () => {
  const { queue, sent } = start();
  const failing = queue.ask("1", [hold(1)]);
  const next = queue.ask("1", [hold(1)]);
  sent[0]?.fail();
  await expect(failing).rejects.toThrow("revoked");
  await turn();
  sent[1]?.answer();
  expect(await next).toEqual([1]);
});
