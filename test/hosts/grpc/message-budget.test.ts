import { expect, test } from "vitest";
import { MessageBudget, type Incomplete } from "../../../src/hosts/grpc/message-budget.ts";

/** Calls by number, and those that were evicted. */
function callsOf(budget: MessageBudget, count: number): { calls: Incomplete[]; evicted: number[] } {
  const evicted: number[] = [];
  const calls = Array.from({ length: count }, (_, no) => ({ bytes: 0, evict: () => void evicted.push(no) }));
  for (const call of calls) budget.add(call);
  return { calls, evicted };
}

const at = (calls: readonly Incomplete[], no: number): Incomplete => calls[no] ?? expect.fail("no such call");

test("the calls that began first make room, and only as many as are needed", () => {
  const budget = new MessageBudget(10, 100);
  const { calls, evicted } = callsOf(budget, 12);
  expect(evicted).toEqual([0, 1]);
  for (const call of calls) budget.grow(call, 10);
  expect(evicted).toEqual([0, 1]);
  budget.grow(at(calls, 11), 15);
  expect(evicted).toEqual([0, 1, 2, 3]);
  budget.grow(at(calls, 4), 200);
  expect(evicted).toEqual([0, 1, 2, 3, 4]);
});

test("what is given back can be used again, and only once", () => {
  const budget = new MessageBudget(10, 100);
  const { calls, evicted } = callsOf(budget, 2);
  for (let turn = 0; turn < 5; turn += 1) {
    budget.grow(at(calls, 0), 90);
    budget.shrink(at(calls, 0), 90);
  }
  budget.grow(at(calls, 0), 50);
  budget.remove(at(calls, 0));
  budget.remove(at(calls, 0));
  budget.shrink(at(calls, 0), 50);
  budget.grow(at(calls, 0), 50);
  budget.grow(at(calls, 1), 100);
  expect(evicted).toEqual([]);
  budget.grow(at(calls, 1), 1);
  expect(evicted).toEqual([1]);
});

test("complete messages are never evicted: more are refused", () => {
  const budget = new MessageBudget(10, 100);
  const { calls, evicted } = callsOf(budget, 1);
  const release = budget.hold(60);
  budget.grow(at(calls, 0), 40);
  expect(budget.hold(50)).toBeUndefined();
  expect(evicted).toEqual([0]);
  release?.();
  expect(budget.hold(100)).toBeTypeOf("function");
});
