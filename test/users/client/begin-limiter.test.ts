import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { BeginLimiter } from "../../../src/users/client/begin-limiter.ts";
import { LeaseholdError, type ClientOptions } from "../../../src/users/client/index.ts";
import {
  committed,
  errorOf,
  fakeClient,
  granted,
  hangs,
  leaseOf,
  problem,
  rolledBack,
  unavailable,
  UUID,
  type Answering,
  type Sent,
} from "./fake.ts";

describe("the circuit breaker", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  function breaking(
    replies: readonly Answering[],
    breaker: ClientOptions["breaker"] = { failures: 3, openMs: 1_000 },
  ) {
    const states: string[] = [];
    const hooks = { onBreaker: ({ state }: { state: string }) => void states.push(state) };
    const { client, sent } = fakeClient(replies, { retries: 0, breaker, hooks });
    const begin = () => client.leases.begin({});
    return { client, sent, states, begin, fail: () => errorOf(begin()) };
  }

  it("opens after `failures` begins in a row without an answer, and then sends nothing", async () => {
    const { fail, sent, states } = breaking([unavailable]);
    for (let count = 0; count < 3; count += 1)
      expect(await fail()).toMatchObject({ code: "UNAVAILABLE", outcomeKnown: false });
    expect(states).toEqual(["open"]);
    const refused = await fail();
    expect(refused).toMatchObject({
      name: "UnavailableError",
      outcomeKnown: true,
      retryable: true,
      retryAfterMs: 1_000,
    });
    expect(sent).toHaveLength(3);
  });

  it("counts a refusal as an answer", async () => {
    const { fail, states } = breaking([
      unavailable,
      unavailable,
      problem(409, "ABORTED"),
      unavailable,
      unavailable,
      granted,
    ]);
    for (let count = 0; count < 5; count += 1) await fail();
    expect(states).toEqual([]);
  });

  it("does not count cancelled begins", async () => {
    const { client, fail, states, sent } = breaking([unavailable, unavailable, hangs, unavailable]);
    await fail();
    await fail();
    const controller = new AbortController();
    const ended = errorOf(client.leases.begin({}, { signal: controller.signal }));
    await vi.advanceTimersByTimeAsync(1);
    controller.abort();
    expect(await ended).toMatchObject({ code: "CANCELLED" });
    expect(states).toEqual([]);
    await fail();
    expect(states).toEqual(["open"]);
    expect(sent).toHaveLength(4);
  });

  it("lets one begin probe after `openMs`, and closes when that is answered", async () => {
    const slow = async () => {
      await new Promise((resume) => setTimeout(resume, 50));
      return granted;
    };
    const { begin, fail, sent, states } = breaking([unavailable, unavailable, unavailable, slow, granted]);
    for (let count = 0; count < 3; count += 1) await fail();
    await vi.advanceTimersByTimeAsync(999);
    expect(await fail()).toMatchObject({ outcomeKnown: true, retryAfterMs: 1 });
    await vi.advanceTimersByTimeAsync(1);
    const probe = begin();
    expect(await fail()).toMatchObject({ outcomeKnown: true });
    expect(sent).toHaveLength(4);
    await vi.advanceTimersByTimeAsync(50);
    expect(await probe).toMatchObject({ state: "GRANTED" });
    await begin();
    expect(states).toEqual(["open", "half_open", "closed"]);
  });

  it("doubles the time open after each failed probe, up to 2 s, until it closes", async () => {
    const down = Array.from({ length: 9 }, () => unavailable);
    const { begin, fail, states } = breaking([...down, granted, unavailable], {});
    for (let count = 0; count < 5; count += 1) await fail();
    for (const openMs of [500, 1_000, 2_000, 2_000]) {
      expect(await fail()).toMatchObject({ outcomeKnown: true, retryAfterMs: openMs });
      await vi.advanceTimersByTimeAsync(openMs);
      expect(await fail()).toMatchObject({ outcomeKnown: false });
    }
    await vi.advanceTimersByTimeAsync(2_000);
    await begin();
    expect(states.slice(-2)).toEqual(["half_open", "closed"]);
    for (let count = 0; count < 5; count += 1) await fail();
    expect(await fail()).toMatchObject({ retryAfterMs: 500 });
  });

  it("always stays open for `openMs` if that is longer than 2 s", async () => {
    const { fail } = breaking([unavailable], { failures: 1, openMs: 9_000 });
    await fail();
    for (let count = 0; count < 3; count += 1) {
      expect(await fail()).toMatchObject({ outcomeKnown: true, retryAfterMs: 9_000 });
      await vi.advanceTimersByTimeAsync(9_000);
      expect(await fail()).toMatchObject({ outcomeKnown: false });
    }
  });

  it("lets another begin probe while the last probe has no answer", async () => {
    const { client, begin, fail, sent, states } = breaking(
      [unavailable, unavailable, unavailable, hangs, hangs, granted],
      { failures: 3, openMs: 1_000 },
    );
    for (let count = 0; count < 3; count += 1) await fail();
    const probes = [];
    for (let count = 0; count < 2; count += 1) {
      await vi.advanceTimersByTimeAsync(1_000);
      probes.push(errorOf(client.leases.begin({}, { deadlineMs: 5_000 })));
      expect(await fail()).toMatchObject({ outcomeKnown: true, retryAfterMs: 1_000 });
    }
    await vi.advanceTimersByTimeAsync(1_000);
    await begin();
    expect(sent).toHaveLength(6);
    // Their failures come too late to open it again.
    await vi.advanceTimersByTimeAsync(5_000);
    expect(await Promise.all(probes)).toMatchObject([
      { code: "DEADLINE_EXCEEDED" },
      { code: "DEADLINE_EXCEEDED" },
    ]);
    await begin();
    expect(states).toEqual(["open", "half_open", "closed"]);
  });

  it("lets the next begin probe when a probe was cancelled or sent nothing", async () => {
    const { client, begin, fail, states } = breaking([unavailable, unavailable, unavailable, hangs, granted]);
    for (let count = 0; count < 3; count += 1) await fail();
    await vi.advanceTimersByTimeAsync(1_000);
    expect(await errorOf(client.leases.begin({}, { uuid: ".." }))).toMatchObject({
      code: "INVALID_ARGUMENT",
    });
    const controller = new AbortController();
    const ended = errorOf(client.leases.begin({}, { signal: controller.signal }));
    await vi.advanceTimersByTimeAsync(1);
    controller.abort();
    await ended;
    await begin();
    expect(states).toEqual(["open", "half_open", "open", "half_open", "open", "half_open", "closed"]);
  });

  it("closes when a begin from before it opened is answered late", async () => {
    const slow = async () => {
      await new Promise((resume) => setTimeout(resume, 50));
      return granted;
    };
    const { begin, fail, states } = breaking([slow, unavailable, unavailable, unavailable, granted]);
    const late = begin();
    for (let count = 0; count < 3; count += 1) await fail();
    await vi.advanceTimersByTimeAsync(50);
    await late;
    await begin();
    expect(states).toEqual(["open", "closed"]);
  });

  it("never delays commits, rollbacks or reads", async () => {
    const { client, fail, sent } = breaking([
      unavailable,
      unavailable,
      unavailable,
      committed,
      rolledBack,
      granted,
    ]);
    for (let count = 0; count < 3; count += 1) await fail();
    await client.leases.commit(UUID);
    await client.leases.rollback(UUID);
    await client.leases.get(UUID);
    expect(sent).toHaveLength(6);
    expect(await fail()).toMatchObject({ outcomeKnown: true });
  });

  it("opens after five failures by default", async () => {
    const { fail, sent } = breaking([unavailable], undefined);
    const without = breaking([unavailable], false);
    const fromDefaults = fakeClient([unavailable], { retries: 0 });
    for (let count = 0; count < 7; count += 1) {
      await fail();
      await without.fail();
      await errorOf(fromDefaults.client.leases.begin({}));
    }
    expect(sent).toHaveLength(3);
    expect(without.sent).toHaveLength(7);
    expect(fromDefaults.sent).toHaveLength(5);
  });
});

describe("the limit on begins", () => {
  afterEach(() => void vi.useRealTimers());

  /** Begins wait until they are released. All other calls are answered at once. */
  function limited(begins: ClientOptions["begins"]) {
    const release = Promise.withResolvers<void>();
    const events: object[] = [];
    const answering = async ({ method }: Sent) => {
      if (method === "PUT") await release.promise;
      return { status: 200, json: { lease: leaseOf("GRANTED") } };
    };
    const { client, sent } = fakeClient([answering], {
      begins,
      hooks: { onTooManyBegins: (event) => void events.push(event) },
    });
    return { client, sent, events, letGo: release.resolve };
  }

  it("refuses begins above the limit at once, and sends nothing", async () => {
    const { client, sent, letGo, events } = limited({ max: 2 });
    const begun = [client.leases.begin({}), client.leases.begin({})];
    const error = await errorOf(client.leases.begin({}));
    expect(error).toMatchObject({
      name: "ResourceExhaustedError",
      reason: "TOO_MANY_BEGINS_HERE",
      outcomeKnown: true,
      retryable: true,
    });
    expect(error.status).toBeUndefined();
    expect(error.retryAfterMs).toBeGreaterThan(0);
    expect(sent).toHaveLength(2);
    letGo();
    await Promise.all(begun);
    await client.leases.begin({});
    expect(sent).toHaveLength(3);
    expect(events).toEqual([]);
  });

  it("is shared with the clients of other cells", async () => {
    const { client, letGo } = limited({ max: 1 });
    const begun = client.leases.begin({});
    await expect(client.forCell("8").leases.begin({})).rejects.toBeInstanceOf(LeaseholdError);
    letGo();
    await begun;
  });

  it("sends them and calls the hook, when it only warns", async () => {
    const { client, sent, letGo, events } = limited({ max: 1, onFull: "warn" });
    const begun = [client.leases.begin({}), client.leases.begin({}), client.leases.begin({})];
    letGo();
    await Promise.all(begun);
    expect(sent).toHaveLength(3);
    expect(events).toEqual([
      { underWay: 2, max: 1 },
      { underWay: 3, max: 1 },
    ]);
  });

  it("never delays commits, rollbacks or reads", async () => {
    const { client, sent, letGo } = limited({ max: 1 });
    const begun = client.leases.begin({});
    await client.leases.commit(UUID);
    await client.leases.rollback(UUID);
    await client.leases.get(UUID);
    expect(sent).toHaveLength(4);
    letGo();
    await begun;
  });

  it("counts a begin that never ends, as in a Worker, until its deadline", async () => {
    vi.useFakeTimers();
    const limiter = new BeginLimiter({ max: 1 }, {}, undefined);
    const begin = (withinMs: number) => {
      const sent = vi.fn(() => new Promise<never>(() => {}));
      void limiter.run(sent, withinMs, true);
      return sent;
    };
    expect(begin(2_000)).toHaveBeenCalledWith(true);
    await vi.advanceTimersByTimeAsync(2_000);
    expect(begin(2_000)).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(1);
    expect(begin(2_000)).toHaveBeenCalledWith(true);
  });

  it("is 300 by default", async () => {
    const { client, sent, letGo } = limited(undefined);
    const begun = Array.from({ length: 300 }, () => client.leases.begin({}));
    expect(await errorOf(client.leases.begin({}))).toMatchObject({ reason: "TOO_MANY_BEGINS_HERE" });
    letGo();
    await Promise.all(begun);
    expect(sent).toHaveLength(300);
  });
});

describe("begins that wait for names", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  const waitOf = ({ body }: Sent): unknown => (JSON.parse(body ?? "") as { wait_ms?: unknown }).wait_ms;

  it("leave room for others: only a third of the begins may wait", async () => {
    const { client, sent } = fakeClient([hangs], { begins: { max: 6 }, retries: 0 });
    const controller = new AbortController();
    const options = { waitMs: 5_000, signal: controller.signal };
    const begun = Array.from({ length: 4 }, () => errorOf(client.leases.begin({}, options)));
    await vi.advanceTimersByTimeAsync(1);
    expect(sent.map(waitOf)).toEqual([5_000, 5_000, undefined, undefined]);
    controller.abort();
    await Promise.all(begun);
    void errorOf(client.leases.begin({}, { waitMs: 5_000 }));
    await vi.advanceTimersByTimeAsync(1);
    expect(sent.map(waitOf).at(-1)).toBe(5_000);
  });

  it("may take longer by this time, with each attempt and altogether", async () => {
    const timed = (options: object) => {
      const { client, sent } = fakeClient([hangs], { attemptMs: 1_000, deadlineMs: 1_500 });
      let endedMs: number | undefined;
      const startedMs = performance.now();
      void errorOf(client.leases.begin({}, options)).then(() => (endedMs = performance.now() - startedMs));
      return { sent, endedMs: () => endedMs };
    };
    const [short, long] = [timed({}), timed({ waitMs: 10_000 })];
    await vi.advanceTimersByTimeAsync(2_000);
    expect(short.sent).toHaveLength(2);
    expect(short.endedMs()).toBe(1_500);
    await vi.advanceTimersByTimeAsync(8_900);
    expect(long.sent).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(700);
    expect(long.sent).toHaveLength(2);
    expect(long.endedMs()).toBe(11_500);
  });
});
