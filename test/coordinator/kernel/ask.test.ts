/** Calls to other objects: each gives a clear answer or `unknown`, and their number is limited. */
import { expect, test } from "vitest";
import { ask } from "../../../src/coordinator/kernel/ask.ts";
import { fanOut, Semaphore } from "../../../src/coordinator/kernel/fan-out.ts";
import { ok, refused } from "../../../src/coordinator/kernel/refusal.ts";
import { VirtualClock } from "../../support/virtual-clock.ts";

const TIMEOUT_MS = 1_000;

test("[M2] ok, refused and unknown are different answers", async () => {
  const clock = new VirtualClock();
  const no = refused("NOT_FOUND", "there is none");
  expect(await ask(clock, TIMEOUT_MS, async () => ok(7))).toEqual({ kind: "ok", value: 7 });
  expect(await ask(clock, TIMEOUT_MS, async () => no)).toEqual({ kind: "refused", refusal: no.refusal });
  const failures: (() => Promise<never>)[] = [
    () => Promise.reject(new Error("it broke")),
    () => {
      throw new Error("it broke");
    },
    () => Promise.reject("it broke"),
  ];
  for (const fail of failures)
    expect(await ask(clock, TIMEOUT_MS, fail)).toEqual({ kind: "unknown", cause: "it broke" });
});

test("[M2] a missing answer is unknown, and a later answer changes nothing", async () => {
  const clock = new VirtualClock();
  const late = Promise.withResolvers<{ ok: true; value: number }>();
  const asked = ask(clock, TIMEOUT_MS, () => late.promise);
  let answered = false;
  void asked.then(() => (answered = true));
  await clock.pass(TIMEOUT_MS - 1);
  expect(answered).toBe(false);
  await clock.pass(1);
  expect(answered).toBe(true);
  late.resolve(ok(7) as { ok: true; value: number });
  expect(await asked).toMatchObject({ kind: "unknown", timedOut: true });
});

/** Work that ends when the test says so. Counts how many tasks run at the same time. */
class Works {
  underWay = 0;
  most = 0;
  readonly started: number[] = [];
  readonly #ends = new Map<number, () => void>();

  start = async (id: number): Promise<string> => {
    this.started.push(id);
    this.underWay += 1;
    this.most = Math.max(this.most, this.underWay);
    await new Promise<void>((end) => this.#ends.set(id, end));
    this.underWay -= 1;
    return `result ${id}`;
  };

  async end(id: number): Promise<void> {
    this.#ends.get(id)?.();
    await new VirtualClock().pass(0);
  }
}

test("[N1] a fan-out keeps to its width, starts the next item early, and keeps the order", async () => {
  const works = new Works();
  const all = fanOut([0, 1, 2, 3], 2, works.start);
  expect(works.started).toEqual([0, 1]);
  await works.end(1);
  expect(works.started).toEqual([0, 1, 2]);
  await works.end(2);
  await works.end(3);
  await works.end(0);
  expect(await all).toEqual(["result 0", "result 1", "result 2", "result 3"]);
  expect(works.most).toBe(2);
  expect(await fanOut([], 2, works.start)).toEqual([]);
});

test("[N1] a semaphore runs its width in order, and a failed task returns its permit", async () => {
  const works = new Works();
  const semaphore = new Semaphore(2);
  const passed = [0, 1, 2, 3].map((id) => semaphore.run(() => works.start(id)));
  await works.end(-1);
  expect(works.started).toEqual([0, 1]);
  await works.end(0);
  expect(works.started).toEqual([0, 1, 2]);
  await works.end(1);
  await works.end(2);
  await works.end(3);
  expect(await Promise.all(passed)).toHaveLength(4);
  expect(works.most).toBe(2);
  // Failed tasks also return their permits.
  for (let round = 0; round < 3; round += 1)
    await expect(semaphore.run(() => Promise.reject(new Error("failed")))).rejects.toThrow("failed");
  const again = [4, 5, 6].map((id) => semaphore.run(() => works.start(id)));
  await works.end(-1);
  expect(works.started.slice(4)).toEqual([4, 5]);
  for (const id of [4, 5, 6]) await works.end(id);
  await Promise.all(again);
  expect(works.most).toBe(2);
});
