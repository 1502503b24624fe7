import { expect, it } from "vitest";
import { inParallel } from "../../../src/users/cell/in-parallel.ts";

const turn = () => new Promise((resume) => setTimeout(resume, 1));

it("runs every item once, within the limit of concurrency", async () => {
  const done: number[] = [];
  let running = 0;
  let most = 0;
  await inParallel([1, 2, 3, 4, 5, 6, 7], 3, async (item) => {
    running += 1;
    most = Math.max(most, running);
    await turn();
    running -= 1;
    done.push(item);
  });
  expect(done.toSorted((a, b) => a - b)).toEqual([1, 2, 3, 4, 5, 6, 7]);
  expect(most).toBe(3);
});

it("starts no more items after an error, and throws it when the running ones have ended", async () => {
  const ended: number[] = [];
  const work = async (item: number): Promise<void> => {
    if (item === 1) throw new Error("no");
    await turn();
    ended.push(item);
  };
  await expect(inParallel([1, 2, 3, 4], 2, work)).rejects.toThrow("no");
  expect(ended).toEqual([2]);
});
