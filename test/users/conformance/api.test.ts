/** Calls of the conformance suite: when they are repeated, and how many run at a time. */
import { expect, onTestFinished, test } from "vitest";
import { Api, NoAnswerError, Slots, type ApiOptions } from "../../../src/users/conformance/api.ts";
import { startTestCoordinator, type Fault } from "../../../src/users/testing/index.ts";

async function start(options: Partial<ApiOptions> = {}) {
  const coordinator = await startTestCoordinator();
  onTestFinished(() => coordinator.close());
  const { url, fetch, keys, faults } = coordinator;
  const { signal } = new AbortController();
  const api = new Api({
    url,
    fetch,
    keys: { cell: keys.cell("1") },
    signal,
    calls: new Slots(4),
    ...options,
  });
  return { api, faults };
}

const LEASES = "/v1/cells/1/leases";
const busy: Fault = { kind: "unavailable" };

test("sends the key of the caller, and what it gets is not changed", async () => {
  const { api } = await start();
  const received = await api.send("GET", LEASES);
  expect(received).toMatchObject({
    method: "GET",
    path: LEASES,
    status: 200,
    json: { leases: [], next_page_token: "" },
    isRepeated: false,
  });
  expect(received.header("content-type")).toContain("application/json");
  expect((await api.send("GET", LEASES, { who: "nobody" })).status).toBe(401);
  await expect(api.send("GET", LEASES, { who: "router" })).rejects.toThrow("no key of the role router");
  expect([api.has("cell"), api.has("nobody"), api.has("router")]).toEqual([true, true, false]);
});

test("sends a body that is no JSON as it is", async () => {
  const { api } = await start();
  const received = await api.send("POST", LEASES, { raw: "{" });
  expect([received.status, received.json]).toMatchObject([400, { code: "INVALID_ARGUMENT" }]);
});

test("repeats a call that is answered with `try again`, unless it is to be sent once", async () => {
  const { api, faults } = await start();
  faults.next(busy);
  expect(await api.send("GET", LEASES)).toMatchObject({ status: 200, isRepeated: true });
  faults.next(busy);
  expect(await api.send("GET", LEASES, { isOnce: true })).toMatchObject({ status: 503, isRepeated: false });
});

test("says which call got no answer, and why", async () => {
  const { api, faults } = await start();
  faults.next({ kind: "lose_answer" });
  const failed = await api.send("GET", LEASES).catch((error: unknown) => error);
  expect(failed).toBeInstanceOf(NoAnswerError);
  expect(String(failed)).toContain(`GET ${LEASES} got no answer: fetch failed (the answer was lost)`);
});

test("throws the reason of an interrupt, and not that a call got no answer", async () => {
  const interrupt = new AbortController();
  const { api, faults } = await start({ signal: interrupt.signal });
  faults.next({ kind: "hang", carriedOut: false });
  const call = api.send("GET", LEASES);
  interrupt.abort(new Error("interrupted"));
  await expect(call).rejects.toThrow("interrupted");
});

test("slots let so many tasks run at a time, in the order of their calls", async () => {
  const slots = new Slots(2);
  const log: string[] = [];
  let running = 0;
  const ran = [1, 2, 3, 4, 5].map((task) =>
    slots.use(async () => {
      running += 1;
      log.push(`${task}:${running}`);
      await new Promise((resolve) => setImmediate(resolve));
      running -= 1;
      if (task === 1) throw new Error("a task that fails frees its slot");
    }),
  );
  await Promise.allSettled(ran);
  expect(log).toEqual(["1:1", "2:2", "3:2", "4:2", "5:2"]);
});
