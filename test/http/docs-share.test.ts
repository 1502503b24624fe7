/** The share of callers without a key, who read the documents of the API. */
import { expect, test } from "vitest";
import { sendDocument } from "../../src/http/docs/send.ts";
import { encodedOnce } from "../../src/http/encoded-once.ts";
import { FairShares } from "../../src/http/fair-shares.ts";

const CHUNK_BYTES = 65_536;
const TEXT = "x".repeat(3 * CHUNK_BYTES + 1);

/** A clock whose timers fire at once, or are kept. */
class Timers {
  fired = 0;
  isPaused = false;
  readonly clock = {
    now: () => 0,
    after: (_: number, then: () => void): (() => void) => {
      if (!this.isPaused) queueMicrotask(() => ((this.fired += 1), then()));
      return () => {};
    },
  };
}

async function send(timers: Timers, fairShares = new FairShares(timers.clock)) {
  const answer = await sendDocument(
    { fairShares, clock: timers.clock },
    encodedOnce(() => TEXT)({}),
    () => {},
  );
  if (!answer.ok) throw new Error(answer.refusal.detail);
  return answer.value.body;
}

test("[M8] a document is sent in parts of 64 KiB, with a pause before each", async () => {
  const timers = new Timers();
  const lengths: number[] = [];
  for await (const chunk of await send(timers)) lengths.push(chunk.length);
  expect(lengths).toEqual([CHUNK_BYTES, CHUNK_BYTES, CHUNK_BYTES, 1]);
  expect(timers.fired).toBeGreaterThanOrEqual(lengths.length);
});

test("[M8] a part is made only when the caller takes it", async () => {
  const timers = new Timers();
  const reader = (await send(timers)).getReader();
  await reader.read();
  await new Promise((resolve) => setTimeout(resolve, 5));
  expect(timers.fired).toBe(1);
});

test.each(["is read", "is cancelled"])(
  "[M8] the next document begins when the one before %s",
  async (end) => {
    const timers = new Timers();
    const fairShares = new FairShares(timers.clock);
    // Another caller, so the share is small.
    const principal = {
      role: "cell",
      keyId: "k",
      cell: "1",
      expiresAtMs: 9e15,
      credential: { kind: "key" },
    } as const;
    await fairShares.run(
      principal,
      0,
      () => {},
      async () => {},
    );
    const first = await send(timers, fairShares);
    let isBegun = false;
    timers.isPaused = true;
    const second = send(timers, fairShares).then(() => void (isBegun = true));
    await new Promise((resolve) => setTimeout(resolve, 5));
    expect(isBegun).toBe(false);
    timers.isPaused = false;
    if (end === "is cancelled") await first.cancel();
    else for await (const chunk of first) expect(chunk.length).toBeGreaterThan(0);
    await second;
    expect(isBegun).toBe(true);
  },
);
