import { afterEach, expect, test, vi } from "vitest";
import { BackgroundWork } from "../../../src/users/cell/background-work.ts";

const LONG_MS = 1_000_000;

afterEach(() => void vi.useRealTimers());

test("work in the background is limited, and can be waited for", async () => {
  const background = new BackgroundWork();
  await background.finish(LONG_MS);
  const ends = Promise.withResolvers<void>();
  let done = 0;
  const work = async (): Promise<void> => {
    await ends.promise;
    done += 1;
  };
  const started = Array.from({ length: 301 }, () => background.start(work));
  expect(started.filter(Boolean)).toHaveLength(300);
  expect(started.at(-1)).toBe(false);
  ends.resolve();
  await background.finish(LONG_MS);
  expect(done).toBe(300);
  expect(background.start(work)).toBe(true);
  await background.finish(LONG_MS);
  expect(done).toBe(301);
});

test("work that takes too long is given up, and later work is not", async () => {
  const background = new BackgroundWork();
  const ended: string[] = [];
  const until = (name: string, signal: AbortSignal): Promise<void> =>
    new Promise((resolve) => {
      signal.addEventListener("abort", () => {
        ended.push(name);
        resolve();
      });
    });
  background.start((signal) => until("first", signal));
  await background.finish(0);
  expect(ended).toEqual(["first"]);
  const second = Promise.withResolvers<void>();
  background.start(async (signal) => Promise.race([second.promise, until("second", signal)]));
  second.resolve();
  await background.finish(LONG_MS);
  expect(ended).toEqual(["first"]);
});

test("work that never ends, as in a Worker, is not waited for, and makes room", async () => {
  vi.useFakeTimers();
  const background = new BackgroundWork();
  const never = (): Promise<void> => new Promise(() => {});
  for (let n = 0; n < 300; n += 1) background.start(never);
  let isFinished = false;
  void background.finish(2_000).then(() => (isFinished = true));
  await vi.advanceTimersByTimeAsync(3_000);
  expect(isFinished).toBe(true);
  expect(background.start(never)).toBe(false);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(background.start(never)).toBe(true);
});
