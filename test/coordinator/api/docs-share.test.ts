/** The share of callers without a key, who read the documents of the API. */
import { expect, test } from "vitest";
import type { Principal } from "../../../src/coordinator/auth/principal.ts";
import { sendDocument, encodedOnce } from "../../../src/coordinator/api/encoded-once.ts";
import { FairShares } from "../../../src/coordinator/api/fair-shares.ts";
import { Api } from "../../support/workerd/api.ts";

const CHUNK_BYTES = 65_536;
const TEXT = "x".repeat(3 * CHUNK_BYTES + 1);
const AT_A_TIME = 2;

const KEYED: Principal = {
  role: "cell",
  keyId: "k",
  cell: "1",
  expiresAtMs: Number.MAX_SAFE_INTEGER,
  credential: { kind: "key" },
};

/** A clock whose short timers fire at once, and whose others fire on demand. */
class Fixture {
  pauses = 0;
  readonly ended: string[] = [];
  readonly #timers = new Set<() => void>();
  readonly #clock = {
    now: () => 0,
    after: (ms: number, then: () => void): (() => void) => {
      if (ms > 1) this.#timers.add(then);
      else queueMicrotask(() => ((this.pauses += 1), then()));
      return () => this.#timers.delete(then);
    },
  };
  readonly #fairShares = new FairShares(this.#clock);

  async send(): Promise<ReadableStream<Uint8Array>> {
    const answer = await sendDocument(
      { fairShares: this.#fairShares, clock: this.#clock },
      encodedOnce(() => TEXT)({}),
      (work) => void work.then(() => this.ended.push("ended")),
    );
    if (!answer.ok) throw new Error(answer.refusal.detail);
    return answer.value.body;
  }

  /** Makes the share small, as it is beside other callers. */
  call(): Promise<unknown> {
    return this.#fairShares.run(
      KEYED,
      0,
      () => {},
      async () => {},
    );
  }

  fireTimers(): void {
    for (const fire of this.#timers) if (this.#timers.delete(fire)) fire();
  }
}

const settled = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 5));

test("[M8] a document is sent in parts of 64 KiB, with a pause before each", async () => {
  const fixture = new Fixture();
  const lengths: number[] = [];
  for await (const chunk of await fixture.send()) lengths.push(chunk.length);
  expect(lengths).toEqual([CHUNK_BYTES, CHUNK_BYTES, CHUNK_BYTES, 1]);
  expect(fixture.pauses).toBeGreaterThanOrEqual(lengths.length);
});

test("[M8] a part is made only when the caller takes it", async () => {
  const fixture = new Fixture();
  const reader = (await fixture.send()).getReader();
  await reader.read();
  await settled();
  expect(fixture.pauses).toBe(1);
});

test.each(["is read", "is cancelled", "is left unread for some time"])(
  "[M8] the next document begins when one before %s",
  async (end) => {
    const fixture = new Fixture();
    await fixture.call();
    const [first] = await Promise.all(Array.from({ length: AT_A_TIME }, () => fixture.send()));
    const begun: string[] = [];
    const next = fixture.send().then(() => begun.push("next"));
    await settled();
    expect(begun).toEqual([]);
    if (end === "is read") for await (const chunk of first ?? []) expect(chunk.length).toBeGreaterThan(0);
    else if (end === "is cancelled") await first?.cancel();
    else fixture.fireTimers();
    await next;
    fixture.fireTimers();
    await settled();
    // No request of workerd is kept for a caller who reads nothing.
    expect(fixture.ended).toHaveLength(1 + AT_A_TIME);
  },
);

test("[M8] more than 100 documents that wait are refused, and no call with a key", async () => {
  const fixture = new Fixture();
  await fixture.call();
  const sent = Array.from({ length: AT_A_TIME + 101 }, () => fixture.send());
  await expect(sent.at(-1)).rejects.toThrow("100 requests of this caller wait already");
  expect(await fixture.call()).toMatchObject({ ok: true });
});

test("[M8] HEAD of a document leaves nothing behind", async () => {
  // It waits for all work of the request.
  const { status } = await new Api().send("HEAD", "/openapi.json", { key: null });
  expect(status).toBe(200);
});
