/** Tests of the order in which a shard carries out reads of many rows. */
import { expect, test } from "vitest";
import { defaultLimits } from "../../../../src/common/limits.ts";
import { ReadQueue } from "../../../../src/coordinator/kernel/shard/read-queue.ts";
import { VirtualClock } from "../../../support/virtual-clock.ts";

function start(): { clock: VirtualClock; queue: ReadQueue; done: string[]; read: ReadOf } {
  const clock = new VirtualClock();
  const queue = new ReadQueue(clock, defaultLimits);
  const done: string[] = [];
  const since = clock.now();
  const read: ReadOf = async (cell, rows) => {
    const answer = await queue.run(cell, () => ({ value: `${cell} at ${clock.now() - since}`, rows }));
    done.push(answer.ok ? answer.value : `${cell} ${answer.refusal.code}`);
  };
  return { clock, queue, done, read };
}

type ReadOf = (cell: string, rows: number) => Promise<void>;

test("[M7] small reads do not wait", async () => {
  const { done, read } = start();
  await Promise.all([read("a", 10), read("a", 100), read("b", 200)]);
  expect(done).toEqual(["a at 0", "a at 0", "b at 0"]);
});

test("[M7] after a large read the shard rests, and cells take turns", async () => {
  const { clock, done, read } = start();
  const reads = [...["a", "a", "a"].map((cell) => read(cell, 2_000)), read("b", 500), read("c", 0)];
  await clock.runUntil(Promise.all(reads));
  expect(done).toEqual(["a at 0", "a at 8", "b at 16", "c at 18", "a at 18"]);
});

test("[M7] a read that throws lets the next one in", async () => {
  const { clock, done, queue, read } = start();
  const first = read("a", 2_000);
  const failing = queue.run("a", () => {
    throw new Error("a bug");
  });
  const last = read("a", 0);
  await expect(clock.runUntil(failing)).rejects.toThrow("a bug");
  await clock.runUntil(Promise.all([first, last]));
  expect(done).toEqual(["a at 0", "a at 8"]);
});

test("[M7] [M6] a read that would wait too long, or behind too many of its cell, is refused", async () => {
  const { clock, done, read } = start();
  const all = Array.from({ length: 103 }, () => read("a", 100_000));
  const other = read("b", 0);
  await clock.runUntil(Promise.all([...all, other]));
  const isRefused = (each: string): boolean => each === "a UNAVAILABLE";
  // 100 may wait beside the first, and the other two are refused at once.
  expect(done.slice(0, 3).filter(isRefused)).toHaveLength(2);
  // Each read rests for 400 ms, so eight of them and that of the other cell get their turn within 3 s.
  expect(done.filter((each) => !isRefused(each))).toEqual([
    "a at 0",
    "a at 400",
    "b at 800",
    "a at 800",
    "a at 1200",
    "a at 1600",
    "a at 2000",
    "a at 2400",
    "a at 2800",
  ]);
  await clock.runUntil(read("a", 0));
  expect(done.at(-1)).toMatch(/^a at/);
});
