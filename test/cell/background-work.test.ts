import { expect, test } from "vitest";
import { BackgroundWork } from "../../src/cell/background-work.ts";

test("work in the background is limited, and can be waited for", async () => {
  const background = new BackgroundWork();
  await background.ended();
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
  await background.ended();
  expect(done).toBe(300);
  expect(background.start(work)).toBe(true);
  await background.ended();
  expect(done).toBe(301);
});
