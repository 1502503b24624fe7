import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { Progress } from "../../demo/progress.ts";

beforeEach(() => void vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "performance"] }));
afterEach(() => void vi.useRealTimers());

function shown(terminal: { isTTY?: boolean; columns?: number }): { written: string[]; progress: Progress } {
  const written: string[] = [];
  return { written, progress: new Progress({ ...terminal, write: (text: string) => written.push(text) }) };
}

it("writes a new line every 2 s if the output is not a terminal", () => {
  const { written, progress } = shown({});
  progress.set(() => "claiming");
  vi.advanceTimersByTime(4_100);
  progress.milestone("done");
  progress.stop();
  expect(written).toEqual(["   2.0 s  … claiming\n", "   4.0 s  … claiming\n", "   4.1 s  done\n"]);
});

it("rewrites one line on a terminal, and cuts it to the terminal's width", () => {
  const { written, progress } = shown({ isTTY: true, columns: 20 });
  progress.set(() => "claiming a great many names");
  vi.advanceTimersByTime(100);
  expect(written).toEqual(["\r\u001b[K   0.0 s  … claimin", "\r\u001b[K   0.1 s  … claimin"]);
  progress.stop();
  expect(written.at(-1)).toBe("\r\u001b[K");
});
