/** Faults between a cell and a test coordinator. */
import { v4 as newUuid } from "uuid";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
  startTestCoordinator,
  type CallFilter,
  type Fault,
  type TestCoordinator,
} from "../../../src/users/testing/index.ts";
import { Cell } from "./cell.ts";

let coordinator: TestCoordinator;
let cell: Cell;
let uuid: string;

beforeEach(async () => {
  coordinator = await startTestCoordinator();
  cell = new Cell(coordinator);
  uuid = newUuid();
});

afterEach(() => coordinator.close());

/** Describes the outcome of a call. */
const outcomeOf = (call: Promise<Response>): Promise<string> =>
  call.then(
    ({ status }) => String(status),
    (error: unknown) => String(error),
  );

/** Like `outcomeOf`, but returns `silence` for a call that is still pending after a moment. */
async function outcomeOrSilence(call: Promise<Response>): Promise<string> {
  const silence = new Promise<string>((resolve) => setTimeout(() => resolve("silence"), 50));
  return Promise.race([outcomeOf(call), silence]);
}

describe("a begin", () => {
  test.each<[Fault, outcome: string, state: string | undefined]>([
    [{ kind: "lose_request" }, "TypeError: fetch failed", undefined],
    [{ kind: "lose_answer" }, "TypeError: fetch failed", "GRANTED"],
    [{ kind: "hang", carriedOut: false }, "silence", undefined],
    [{ kind: "hang", carriedOut: true }, "silence", "GRANTED"],
    [{ kind: "unavailable" }, "503", undefined],
    [{ kind: "unavailable", carriedOut: true }, "503", "GRANTED"],
    [{ kind: "delay", ms: 10 }, "201", "GRANTED"],
  ])("%j", async (fault, outcome, state) => {
    coordinator.faults.next(fault, { operation: "begin" });
    const call = cell.begin("ada", uuid);
    // Only a call that never answers needs a time limit; others may take long on a busy machine.
    expect(await (fault.kind === "hang" ? outcomeOrSilence(call) : outcomeOf(call))).toBe(outcome);
    await expect.poll(async () => (await cell.lease(uuid))?.state).toBe(state);
    // The fault was for one call, so the same call gets a normal answer now.
    expect((await cell.begin("ada", uuid)).status).toBe(state === undefined ? 201 : 200);
  });

  test("that fails has the fault as its cause", async () => {
    coordinator.faults.next({ kind: "lose_answer" });
    await expect(cell.begin("ada", uuid)).rejects.toMatchObject({
      cause: { message: "the answer was lost" },
    });
  });

  test("that finds the coordinator unavailable gets the problem of a real one", async () => {
    coordinator.faults.next({ kind: "unavailable" });
    const response = await cell.begin("ada", uuid);
    expect(response.headers.get("content-type")).toBe("application/problem+json");
    expect(response.headers.get("retry-after")).toBe("1");
    expect(await response.json()).toMatchObject({
      status: 503,
      code: "UNAVAILABLE",
      retryable: true,
      lease_uuid: uuid,
      request_id: response.headers.get("x-request-id"),
    });
  });
});

describe("a fault selects calls", () => {
  test("by operation", async () => {
    coordinator.faults.next({ kind: "lose_request" }, { operation: "commit" });
    expect((await cell.begin("ada", uuid)).status).toBe(201);
    await expect(cell.commit(uuid)).rejects.toThrow("fetch failed");
    expect((await cell.commit(uuid)).status).toBe(200);
  });

  test("by cell", async () => {
    coordinator.faults.always({ kind: "lose_request" }, { cell: "2" });
    expect((await cell.begin("ada", uuid)).status).toBe(201);
    await expect(new Cell(coordinator, "2").begin("grace")).rejects.toThrow("fetch failed");
  });

  test("by lease, in any letter case", async () => {
    coordinator.faults.always({ kind: "lose_request" }, { uuid: uuid.toUpperCase() });
    expect((await cell.begin("grace")).status).toBe(201);
    await expect(cell.begin("ada", uuid)).rejects.toThrow("fetch failed");
  });

  test("of every kind, without a filter", async () => {
    coordinator.faults.next({ kind: "lose_request" });
    await expect(coordinator.fetch(`${coordinator.url}/healthz`)).rejects.toThrow("fetch failed");
  });
});

describe("several faults", () => {
  test("of `next` apply in the order in which they were added, before those of `always`", async () => {
    const { faults } = coordinator;
    const stop = faults.always({ kind: "unavailable" });
    faults.next({ kind: "lose_request" });
    faults.next({ kind: "lose_answer" });
    const outcomes: string[] = [];
    for (let call = 0; call < 3; call += 1) outcomes.push(await outcomeOf(cell.begin("ada", uuid)));
    expect(outcomes).toEqual(["TypeError: fetch failed", "TypeError: fetch failed", "503"]);
    stop();
    // The coordinator carried out the second call.
    expect((await cell.begin("ada", uuid)).status).toBe(200);
  });

  test("of `always`: the latest one applies until it is removed", async () => {
    const { faults } = coordinator;
    faults.always({ kind: "unavailable" });
    const stop = faults.always({ kind: "lose_request" });
    await expect(cell.begin("ada")).rejects.toThrow("fetch failed");
    stop();
    expect((await cell.begin("ada")).status).toBe(503);
  });

  test("can be removed one by one, and all at once", async () => {
    const { faults } = coordinator;
    faults.next({ kind: "lose_request" })();
    expect((await cell.begin("ada")).status).toBe(201);
    faults.next({ kind: "lose_request" });
    faults.always({ kind: "unavailable" });
    faults.clear();
    expect((await cell.begin("grace")).status).toBe(201);
  });
});

describe("a signal", () => {
  const reason = new Error("I have waited long enough");

  test.each<Fault>([
    { kind: "hang", carriedOut: false },
    { kind: "hang", carriedOut: true },
    { kind: "delay", ms: 60_000 },
  ])("ends the waiting with its own reason: %j", async (fault) => {
    coordinator.faults.next(fault);
    const controller = new AbortController();
    const call = cell.begin("ada", uuid, { signal: controller.signal });
    expect(await outcomeOrSilence(call)).toBe("silence");
    controller.abort(reason);
    await expect(call).rejects.toBe(reason);
  });

  test("of a delayed call prevents the call", async () => {
    coordinator.faults.next({ kind: "delay", ms: 1_000 });
    const controller = new AbortController();
    const call = cell.begin("ada", uuid, { signal: controller.signal });
    controller.abort();
    await expect(call).rejects.toMatchObject({ name: "AbortError" });
    await coordinator.advance(2_000);
    expect(await cell.lease(uuid)).toBeUndefined();
  });

  test("that was aborted before the call sends nothing", async () => {
    await expect(cell.begin("ada", uuid, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    expect(coordinator.faults.calls).toEqual([]);
  });

  test("of a call that is under way only ends the waiting", async () => {
    const controller = new AbortController();
    const call = cell.begin("ada", uuid, { signal: controller.signal });
    controller.abort(reason);
    await expect(call).rejects.toBe(reason);
    await expect.poll(async () => (await cell.lease(uuid))?.state).toBe("GRANTED");
  });

  test("of a Request object works too", async () => {
    coordinator.faults.next({ kind: "hang", carriedOut: false });
    const call = coordinator.fetch(
      new Request(`${coordinator.url}/healthz`, { signal: AbortSignal.timeout(5) }),
    );
    await expect(call).rejects.toMatchObject({ name: "TimeoutError" });
  });
});

test("a delay ends when its time has passed, or was advanced", async () => {
  coordinator.faults.next({ kind: "delay", ms: 60_000 });
  const call = cell.begin("ada", uuid);
  expect(await outcomeOrSilence(call)).toBe("silence");
  await coordinator.advance(60_000);
  expect((await call).status).toBe(201);
});

test("a fault that can never strike is refused", () => {
  const { faults } = coordinator;
  expect(() => faults.next({ kind: "lose" } as unknown as Fault)).toThrow(
    "`kind` must not be `lose`; it must be one of lose_request, lose_answer",
  );
  const calls = { operation: "beginLease" } as unknown as CallFilter;
  expect(() => faults.always({ kind: "lose_answer" }, calls)).toThrow(
    "`operation` must not be `beginLease`; it must be one of begin, commit",
  );
  for (const ms of [-1, Number.NaN, Infinity])
    expect(() => coordinator.faults.next({ kind: "delay", ms })).toThrow("`ms` of a delay");
});

describe("calls", () => {
  test("are recorded as they arrive, with the status of their answer", async () => {
    const { faults, url, fetch, keys } = coordinator;
    await cell.begin("ada", uuid);
    faults.next({ kind: "lose_answer" });
    await cell.commit(uuid).catch(() => {});
    await cell.call("GET", "?page_size=5");
    const asRouter = { headers: { authorization: `Bearer ${keys.router}` } };
    await fetch(`${url}/v1/records/ROUTES/ada`, asRouter);
    await fetch(`${url}/v1/cells/2/records?source_type=RAILS_TABLE_ROUTES`, asRouter);
    await fetch(`${url}/v1/admin/cells`, asRouter);
    expect(faults.calls).toEqual([
      { operation: "begin", cell: "1", uuid, method: "PUT", path: `/v1/cells/1/leases/${uuid}`, status: 201 },
      {
        operation: "commit",
        cell: "1",
        uuid,
        method: "POST",
        path: `/v1/cells/1/leases/${uuid}/commit`,
        status: null,
      },
      {
        operation: "list",
        cell: "1",
        uuid: null,
        method: "GET",
        path: "/v1/cells/1/leases?page_size=5",
        status: 200,
      },
      {
        operation: "lookup",
        cell: null,
        uuid: null,
        method: "GET",
        path: "/v1/records/ROUTES/ada",
        status: 200,
      },
      {
        operation: "records",
        cell: "2",
        uuid: null,
        method: "GET",
        path: "/v1/cells/2/records?source_type=RAILS_TABLE_ROUTES",
        status: 403,
      },
      { operation: "other", cell: null, uuid: null, method: "GET", path: "/v1/admin/cells", status: 403 },
    ]);
  });

  test("are passed to observers until they are removed", async () => {
    const seen: string[] = [];
    const stop = coordinator.faults.observe(({ operation, status }) => seen.push(`${operation} ${status}`));
    await cell.begin("ada", uuid);
    stop();
    await cell.commit(uuid);
    expect(seen).toEqual(["begin null"]);
  });
});
