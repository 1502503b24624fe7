import { describe, expect, it, vi } from "vitest";
import { CancelledError } from "../../../src/users/client/index.ts";
import { errorOf, fakeClient, granted, hangs, unavailable, UUID, type Answering } from "./fake.ts";

/** Counts the listeners of a signal. */
class CountedSignal {
  readonly controller = new AbortController();
  readonly signal = this.controller.signal;
  listeners = 0;

  constructor() {
    const { signal } = this;
    const add = signal.addEventListener.bind(signal);
    const remove = signal.removeEventListener.bind(signal);
    signal.addEventListener = (...given: Parameters<typeof add>) => ((this.listeners += 1), add(...given));
    signal.removeEventListener = (...given: Parameters<typeof remove>) => (
      (this.listeners -= 1),
      remove(...given)
    );
  }
}

const why = new Error("the user left");
const turn = (): Promise<void> => new Promise((resume) => setTimeout(resume, 5));

/** The signal belongs to the client, or to the call. */
describe.each(["client", "call"] as const)("the signal of the %s", (owner) => {
  function start(replies: readonly Answering[], counted: CountedSignal, backoffMs = 1) {
    const { client, sent } = fakeClient(replies, {
      backoffMs,
      ...(owner === "client" ? { signal: counted.signal } : {}),
    });
    const begin = () =>
      client.leases.begin({}, { uuid: UUID, ...(owner === "call" ? { signal: counted.signal } : {}) });
    return { begin, sent };
  }

  it("ends a call before anything is sent", async () => {
    const counted = new CountedSignal();
    counted.controller.abort(why);
    const { begin, sent } = start([granted], counted);
    const error = await errorOf(begin());
    expect(error).toBeInstanceOf(CancelledError);
    expect(error).toMatchObject({ code: "CANCELLED", cause: why, outcomeKnown: true, retryable: false });
    expect(sent).toEqual([]);
    expect(counted.listeners).toBe(0);
  });

  it("ends an attempt that is under way", async () => {
    const counted = new CountedSignal();
    const { begin, sent } = start([hangs], counted);
    const ended = errorOf(begin());
    await turn();
    expect(counted.listeners).toBeGreaterThan(0);
    counted.controller.abort(why);
    expect(await ended).toMatchObject({ name: "CancelledError", cause: why, outcomeKnown: false });
    expect(sent).toHaveLength(1);
    expect(sent[0]?.signal.aborted).toBe(true);
    expect(counted.listeners).toBe(0);
  });

  it("ends an attempt that was cancelled just before", async () => {
    const controller = new AbortController();
    const hooks = { onRequest: () => controller.abort(why) };
    const { client, sent } = fakeClient([hangs], {
      hooks,
      ...(owner === "client" ? { signal: controller.signal } : {}),
    });
    const error = await errorOf(
      client.leases.begin({}, owner === "call" ? { signal: controller.signal } : {}),
    );
    expect(error).toMatchObject({ name: "CancelledError", cause: why });
    expect(sent).toEqual([]);
  });

  it("ends the backoff between two attempts", async () => {
    const counted = new CountedSignal();
    const random = vi.spyOn(Math, "random").mockReturnValue(1);
    const { begin, sent } = start([unavailable, granted], counted, 5_000);
    const ended = errorOf(begin());
    await turn();
    random.mockRestore();
    expect(sent).toHaveLength(1);
    counted.controller.abort(why);
    expect(await ended).toMatchObject({ name: "CancelledError", cause: why, outcomeKnown: false });
    expect(sent).toHaveLength(1);
    expect(counted.listeners).toBe(0);
  });

  it("keeps no listener after a call has ended", async () => {
    const counted = new CountedSignal();
    const { begin } = start([unavailable, granted, unavailable], counted);
    await begin();
    await errorOf(begin());
    expect(counted.listeners).toBe(0);
  });
});

it("reports a known outcome when all attempts before the cancellation met a limit", async () => {
  const controller = new AbortController();
  const reply = {
    status: 429,
    json: { code: "RESOURCE_EXHAUSTED", retryable: true },
    headers: { "retry-after": "1" },
  };
  const { client } = fakeClient([reply]);
  const ended = errorOf(client.leases.begin({}, { signal: controller.signal }));
  await turn();
  controller.abort(why);
  expect(await ended).toMatchObject({ code: "CANCELLED", outcomeKnown: true });
});

it("ends a call that waits for its key, and sends nothing when the key comes later", async () => {
  const controller = new AbortController();
  const { promise, resolve } = Promise.withResolvers<string>();
  const { client, sent } = fakeClient([granted], { key: () => promise });
  const ended = errorOf(client.leases.begin({}, { signal: controller.signal }));
  controller.abort(why);
  expect(await ended).toMatchObject({ code: "CANCELLED", cause: why });
  resolve("late");
  await turn();
  expect(sent).toEqual([]);
});
