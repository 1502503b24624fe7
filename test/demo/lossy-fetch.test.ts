import { expect, it } from "vitest";
import { lossyFetch } from "../../demo/lossy-fetch.ts";
import type { Fetch } from "../../src/users/client/index.ts";

const init = {
  method: "PUT",
  headers: {},
  redirect: "manual" as const,
  signal: new AbortController().signal,
};

function lossy(
  rate: number,
  seed = 1,
): { call: (path: string) => Promise<boolean>; executed: string[]; lost: number[] } {
  const executed: string[] = [];
  const lost: number[] = [];
  const inner: Fetch = async (url) => {
    executed.push(url);
    return { status: 201, headers: new Headers(), text: async () => "{}" };
  };
  const fetch = lossyFetch(inner, { rate, seed }, (status) => lost.push(status));
  /** Resolves to whether the answer arrived. */
  const call = (path: string): Promise<boolean> =>
    fetch(`http://x${path}`, init).then(
      () => true,
      () => false,
    );
  return { call, executed, lost };
}

it("loses the answer, never the request", async () => {
  const { call, executed, lost } = lossy(1);
  expect(await call("/a")).toBe(false);
  expect(executed).toEqual(["http://x/a"]);
  expect(lost).toEqual([201]);
});

it("loses nothing at a rate of 0", async () => {
  const { call, lost } = lossy(0);
  expect(await call("/a")).toBe(true);
  expect(lost).toEqual([]);
});

it("loses about the configured share of answers, and lets repeated calls through", async () => {
  const { call } = lossy(0.1);
  let lost = 0;
  for (let index = 0; index < 1_000; index += 1) {
    let tries = 1;
    while (!(await call(`/${index}`))) tries += 1;
    lost += tries - 1;
    expect(tries).toBeLessThan(6);
  }
  expect(lost).toBeGreaterThan(70);
  expect(lost).toBeLessThan(160);
});

it("loses answers by the seed and the call, in whatever order the calls come", async () => {
  const paths = Array.from({ length: 200 }, (_, index) => `/${index}`);
  const outcomes = async (seed: number, order: string[]): Promise<string[]> => {
    const { call } = lossy(0.2, seed);
    const lost: string[] = [];
    for (const path of order) if (!(await call(path))) lost.push(path);
    return lost.toSorted();
  };
  const lost = await outcomes(7, paths);
  expect(lost.length).toBeGreaterThan(10);
  expect(await outcomes(7, paths.toReversed())).toEqual(lost);
  expect(await outcomes(8, paths)).not.toEqual(lost);
});
