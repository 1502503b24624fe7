import { expect, it } from "vitest";
import type { Hooks } from "../../../src/users/client/index.ts";
import { errorOf, fakeClient, granted, problem, unavailable, UUID } from "./fake.ts";

/** Records the events of hooks, in order. */
function recordEvents(): { events: [string, object][]; hooks: Hooks } {
  const events: [string, object][] = [];
  const note = (name: string) => (event: object) => void events.push([name, event]);
  return {
    events,
    hooks: { onRequest: note("request"), onResponse: note("response"), onRetry: note("retry") },
  };
}

it("calls hooks for every attempt and every backoff, in order", async () => {
  const { events, hooks } = recordEvents();
  const { client } = fakeClient([new TypeError("fetch failed"), unavailable, granted], { hooks });
  await client.leases.begin({}, { uuid: UUID });
  const operation = "beginLease";
  expect(events).toEqual([
    ["request", { operation, attempt: 1 }],
    ["response", { operation, attempt: 1, kind: "unknown", durationMs: expect.any(Number) }],
    [
      "retry",
      {
        operation,
        attempt: 1,
        waitMs: expect.any(Number),
        error: expect.stringContaining("TypeError: fetch failed"),
      },
    ],
    ["request", { operation, attempt: 2 }],
    [
      "response",
      {
        operation,
        attempt: 2,
        kind: "unknown",
        durationMs: expect.any(Number),
        status: 503,
        requestId: "request-1",
      },
    ],
    ["retry", { operation, attempt: 2, waitMs: expect.any(Number), error: "HTTP 503: UNAVAILABLE." }],
    ["request", { operation, attempt: 3 }],
    ["response", { operation, attempt: 3, kind: "ok", durationMs: expect.any(Number), status: 201 }],
  ]);
});

it("passes the code of a refusal", async () => {
  const { events, hooks } = recordEvents();
  const { client } = fakeClient([problem(409, "ABORTED")], { hooks });
  await errorOf(client.leases.get(UUID));
  const refusal = {
    operation: "getLease",
    attempt: 1,
    kind: "refused",
    durationMs: expect.any(Number),
    status: 409,
    code: "ABORTED",
  };
  expect(events.at(-1)).toEqual(["response", { ...refusal, requestId: "request-1" }]);
});

const failures: Record<string, () => unknown> = {
  throws: () => {
    throw new Error("the collector is full");
  },
  // Nothing awaits the hook, so an unhandled rejection would end the process.
  rejects: () => Promise.reject(new Error("the collector is away")),
};

it.each(Object.entries(failures))("changes nothing when a hook %s", async (_, hook) => {
  const hooks: Hooks = {
    onRequest: hook,
    onResponse: hook,
    onRetry: hook,
    onBreaker: hook,
    onTooManyBegins: hook,
  };
  const options = { hooks, breaker: { failures: 1 }, begins: { max: 1, onFull: "warn" as const } };
  const { client, sent } = fakeClient([unavailable, granted, unavailable], options);
  expect(await client.leases.begin({}, { uuid: UUID })).toMatchObject({ state: "GRANTED" });
  await errorOf(client.leases.begin({}));
  expect(sent).toHaveLength(7);
});

it("sends the caller's traceparent with every attempt, and none that is not valid", async () => {
  const valid = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  const given = [valid, undefined, "00-secret", `${valid}\n`, valid.replace("01", "03")];
  const traceparent = (): string | undefined => {
    if (given.length === 0) throw new Error("no span");
    return given.shift();
  };
  const { client, sent } = fakeClient(
    [unavailable, unavailable, unavailable, unavailable, unavailable, granted],
    {
      traceparent,
      retries: 5,
      breaker: false,
    },
  );
  await client.leases.begin({}, { uuid: UUID });
  expect(sent.map(({ headers }) => headers["traceparent"])).toEqual([
    valid,
    undefined,
    undefined,
    undefined,
    valid.replace("01", "03"),
    undefined,
  ]);
});
