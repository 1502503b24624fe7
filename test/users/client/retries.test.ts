import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Batch, Client, ClientOptions, RetryEvent } from "../../../src/users/client/index.ts";
import {
  busy,
  committed,
  errorOf,
  fakeClient,
  granted,
  hangs,
  problem,
  unavailable,
  UUID,
  type Answering,
  type Reply,
  type Sent,
} from "./fake.ts";

beforeEach(() => void vi.useFakeTimers());

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

interface Run {
  sent: Sent[];
  waits: number[];
  /** In milliseconds since the call began. */
  at: number[];
  outcome: unknown;
}

/** Makes one call with fake timers, until it ends. */
async function run(
  replies: readonly Answering[],
  options: Partial<ClientOptions> = {},
  call: (client: Client) => Promise<unknown> = ({ leases }) => leases.begin({}, { uuid: UUID }),
): Promise<Run> {
  const started = performance.now();
  const waits: number[] = [];
  const at: number[] = [];
  const hooks = {
    onRequest: () => void at.push(performance.now() - started),
    onRetry: ({ waitMs }: RetryEvent) => void waits.push(waitMs),
  };
  const { client, sent } = fakeClient(replies, { breaker: false, backoffMs: 100, hooks, ...options });
  const ended = call(client).then(
    (outcome) => ({ sent, waits, at, outcome }),
    (outcome: unknown) => ({ sent, waits, at, outcome }),
  );
  await vi.runAllTimersAsync();
  return ended;
}

describe("a call whose outcome is unknown", () => {
  it("is retried with the same UUID and the same bytes", async () => {
    const { sent, outcome } = await run([
      new TypeError("fetch failed"),
      unavailable,
      { status: 200, text: '{"lea' },
      granted,
    ]);
    expect(outcome).toMatchObject({ state: "GRANTED" });
    expect(sent).toHaveLength(4);
    expect(new Set(sent.map(({ method, url, body }) => `${method} ${url} ${body}`)).size).toBe(1);
  });

  it("case 15: is retried with the same UUID after a 504 with HTML from a proxy", async () => {
    const ofProxy = {
      status: 504,
      text: "<html>Gateway Timeout</html>",
      headers: { "content-type": "text/html" },
    };
    const { sent, outcome } = await run([ofProxy, granted]);
    expect(outcome).toMatchObject({ state: "GRANTED" });
    expect(new Set(sent.map(({ method, url, body }) => `${method} ${url} ${body}`)).size).toBe(1);
    expect(sent).toHaveLength(2);
    expect((await run([ofProxy], { retries: 0 })).outcome).toMatchObject({ outcomeKnown: false });
  });

  it("is retried with the original batch, even if the caller changes the object meanwhile", async () => {
    const creates: NonNullable<Batch["creates"]>[number][] = [];
    const change = async () => {
      creates.push({
        bucket: { type: "ROUTES", value: "a" },
        subject: { type: "NAMESPACE", id: 1 },
        source: { type: "RAILS_TABLE_ROUTES", id: 1 },
      });
      return unavailable;
    };
    const { sent } = await run([change, granted], {}, ({ leases }) => leases.begin({ creates }));
    expect(sent.map(({ body }) => body)).toEqual(['{"creates":[]}', '{"creates":[]}']);
  });

  it("waits a random time from 0 up to a limit that doubles", async () => {
    const random = vi.spyOn(Math, "random");
    random.mockReturnValue(0);
    expect((await run([unavailable])).waits).toEqual([0, 0, 0, 0]);
    random.mockReturnValue(0.5);
    expect((await run([unavailable])).waits).toEqual([50, 100, 200, 400]);
    random.mockReturnValue(1);
    expect((await run([unavailable], { retries: 7, deadlineMs: 60_000 })).waits).toEqual([
      100, 200, 400, 800, 1_600, 2_000, 2_000,
    ]);
  });

  it.each([0, 1, 3])("is retried at most %i times", async (retries) => {
    const { sent, outcome } = await run([unavailable], { retries });
    expect(sent).toHaveLength(retries + 1);
    expect(outcome).toMatchObject({ code: "UNAVAILABLE", outcomeKnown: false });
  });

  it("is not retried after its deadline, however many retries are allowed", async () => {
    vi.spyOn(Math, "random").mockReturnValue(1);
    const { at, outcome } = await run([unavailable], {
      retries: Number.POSITIVE_INFINITY,
      deadlineMs: 1_000,
    });
    expect(at).toEqual([0, 100, 300, 700]);
    expect(outcome).toMatchObject({ code: "UNAVAILABLE" });
  });

  it("is not retried when the backoff would leave no time for an attempt", async () => {
    vi.spyOn(Math, "random").mockReturnValue(1);
    expect((await run([unavailable], { deadlineMs: 119 })).at).toEqual([0]);
    expect((await run([unavailable], { deadlineMs: 121 })).at).toEqual([0, 100]);
  });

  it("gives no attempt more time than is left until the deadline", async () => {
    vi.spyOn(Math, "random").mockReturnValue(0);
    const started = performance.now();
    const { at, outcome } = await run([hangs], { attemptMs: 400, deadlineMs: 1_000 });
    expect(at).toEqual([0, 400, 800]);
    expect(performance.now() - started).toBe(1_000);
    expect(outcome).toMatchObject({ name: "TimeoutError", code: "DEADLINE_EXCEEDED", outcomeKnown: false });
  });

  it("can have its own deadline", async () => {
    const started = performance.now();
    const { outcome } = await run([hangs], {}, ({ leases }) => leases.commit(UUID, { deadlineMs: 70 }));
    expect(performance.now() - started).toBe(70);
    expect(outcome).toMatchObject({ name: "TimeoutError" });
  });

  it("accepts an infinite deadline", async () => {
    // Real timers, because they fire at once when their delay is infinite.
    vi.useRealTimers();
    const slow = (sent: Sent) =>
      Promise.race([hangs(sent), new Promise<Reply>((resume) => setTimeout(resume, 20, committed))]);
    const { client, sent } = fakeClient([slow], {
      deadlineMs: Number.POSITIVE_INFINITY,
      attemptMs: Number.POSITIVE_INFINITY,
    });
    expect(await client.leases.commit(UUID)).toMatchObject({ state: "COMMITTED" });
    expect(sent).toHaveLength(1);
  });
});

describe("Retry-After", () => {
  beforeEach(() => void vi.spyOn(Math, "random").mockReturnValue(0));

  it.each([
    ["429", busy],
    ["503", unavailable],
  ])("is waited for after a %s, in seconds or up to a date", async (_, reply) => {
    const date = (): Record<string, string> => ({
      "retry-after": new Date(Date.now() + 3_000).toUTCString(),
    });
    vi.setSystemTime(Date.UTC(2026, 10, 21, 12));
    expect((await run([{ ...reply, headers: { "retry-after": "2" } }, granted])).waits).toEqual([2_000]);
    vi.setSystemTime(Date.UTC(2026, 10, 21, 12));
    expect((await run([{ ...reply, headers: date() }, granted])).waits).toEqual([3_000]);
  });

  it.each(["soon", "", "-5", "Thu, 01 Jan 1970 00:00:00 GMT"])("of %j adds no wait", async (given) => {
    expect((await run([{ ...busy, headers: { "retry-after": given } }, granted])).waits).toEqual([0]);
  });

  it("does not shorten the backoff", async () => {
    vi.spyOn(Math, "random").mockReturnValue(1);
    expect((await run([{ ...busy, headers: { "retry-after": "0" } }, granted])).waits).toEqual([100]);
  });

  it("after the deadline ends the call at once, and the error has it", async () => {
    const { sent, outcome } = await run([{ ...busy, headers: { "retry-after": "60" } }]);
    expect(sent).toHaveLength(1);
    expect(outcome).toMatchObject({
      name: "ResourceExhaustedError",
      retryAfterMs: 60_000,
      outcomeKnown: true,
    });
  });
});

it("a body that arrived too slowly is sent again, and is known to have done nothing", async () => {
  const tooSlow = problem(408, "RESOURCE_EXHAUSTED", { reason: "BODY_TOO_SLOW", retryable: true });
  expect((await run([tooSlow, granted])).sent).toHaveLength(2);
  const { outcome } = await run([tooSlow], { retries: 0 });
  expect(outcome).toMatchObject({ reason: "BODY_TOO_SLOW", retryable: true, outcomeKnown: true });
  // A proxy's 408 says nothing about what the coordinator did.
  const ofProxy = { status: 408, text: "", headers: { "content-type": "text/html" } };
  expect((await run([ofProxy], { retries: 0 })).outcome).toMatchObject({ outcomeKnown: false });
});

describe("calls and refusals without retries", () => {
  const calls: Record<string, (client: Client) => Promise<unknown>> = {
    addCell: ({ cells }) => cells.add({ cell_id: "8", name: "eight", address: "https://eight.test" }),
    mintKey: ({ keys }) => keys.mint({ role: "operator" }),
    "reconcilePart with declare_lost": ({ parts }) =>
      parts.reconcile("shard-3", { dry_run: false, declare_lost: true, reason: "a test" }),
  };

  it.each(Object.entries(calls))("%s, whatever the outcome", async (_, call) => {
    for (const reply of [new TypeError("fetch failed"), unavailable, busy]) {
      const { sent, outcome } = await run([reply], {}, call);
      expect(sent).toHaveLength(1);
      expect(outcome).toBeInstanceOf(Error);
    }
  });

  it.each([
    problem(400, "INVALID_ARGUMENT"),
    problem(401, "UNAUTHENTICATED"),
    problem(403, "PERMISSION_DENIED"),
    problem(404, "NOT_FOUND"),
    problem(409, "ALREADY_EXISTS"),
    problem(409, "FAILED_PRECONDITION"),
    problem(409, "ABORTED", { retryable: true }),
    problem(429, "RESOURCE_EXHAUSTED", { retryable: false }),
    problem(413, "RESOURCE_EXHAUSTED"),
    problem(418, "NEVER_HEARD_OF", { retryable: true }),
  ])("a refusal: $json.code, $json.retryable", async (reply) => {
    const { sent, outcome } = await run([reply]);
    expect(sent).toHaveLength(1);
    expect(outcome).toMatchObject({ outcomeKnown: true });
  });

  it("except a limit that passes by itself, which is retried", async () => {
    const { sent, outcome } = await run([busy, busy, granted]);
    expect(sent).toHaveLength(3);
    expect(outcome).toMatchObject({ state: "GRANTED" });
  });
});

describe("outcomeKnown", () => {
  const refusal = problem(409, "ALREADY_EXISTS");

  it.each([
    { what: "a refusal at the first attempt", replies: [refusal], known: true },
    { what: "a refusal after limits only", replies: [busy, busy, refusal], known: true },
    {
      what: "a refusal after an attempt without an answer",
      replies: [new TypeError("fetch failed"), refusal],
      known: false,
    },
    { what: "a refusal after a fault and a limit", replies: [unavailable, busy, refusal], known: false },
    { what: "a limit that stays, after a fault", replies: [unavailable, busy], known: false },
    { what: "no answer", replies: [unavailable], known: false },
  ])("is $known after $what", async ({ replies, known }) => {
    expect((await run(replies)).outcome).toMatchObject({ outcomeKnown: known });
  });
});

it("asks for the key before every attempt", async () => {
  const keys = ["one", "two", "three"];
  const { sent } = await run([unavailable, unavailable, granted], { key: async () => keys.shift() ?? "" });
  expect(sent.map(({ headers }) => headers["authorization"])).toEqual([
    "Bearer one",
    "Bearer two",
    "Bearer three",
  ]);
});

it("reports UNAVAILABLE when the key function fails", async () => {
  const key = vi.fn<() => string>().mockImplementationOnce(() => {
    throw new Error("the vault is sealed");
  });
  key.mockReturnValue("two");
  const { sent, outcome } = await run([granted], { key });
  expect(sent).toHaveLength(1);
  expect(outcome).toMatchObject({ state: "GRANTED" });
});

it("does not wait for a key longer than for an answer", async () => {
  const never = new Promise<string>(() => {});
  const { client, sent } = fakeClient([granted], { key: () => never, deadlineMs: 50 });
  const ended = errorOf(client.leases.begin({}));
  await vi.runAllTimersAsync();
  expect(await ended).toMatchObject({ name: "TimeoutError" });
  expect(sent).toEqual([]);
});
