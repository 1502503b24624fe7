import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { ClientLeases, rollBackPatiently } from "../../../src/users/cell/remote-leases.ts";
import type { ClientOptions } from "../../../src/users/client/index.ts";
import {
  committed,
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
} from "../client/fake.ts";

function leases(
  replies: readonly Answering[],
  options: Partial<ClientOptions> = {},
): { leases: ClientLeases; sent: Sent[] } {
  const { client, sent } = fakeClient(replies, options);
  return { leases: new ClientLeases(client), sent };
}

describe("a call", () => {
  it("[L4] [M2] never rejects: what was thrown, even what has no text, is an unknown outcome", async () => {
    const fetch = (): Promise<never> => Promise.reject(Object.create(null) as Error);
    const { leases: remote } = leases([granted], { fetch, retries: 0 });
    const unknownOutcome = expect.objectContaining({ kind: "unknown", outcomeKnown: false }) as unknown;
    expect(await remote.begin(UUID, {})).toEqual(unknownOutcome);
    expect(await remote.commit(UUID)).toEqual(unknownOutcome);
    expect(await remote.rollback(UUID)).toEqual(unknownOutcome);
    // A read has no outcome that could be unknown.
    expect(await remote.get(UUID)).toMatchObject({ kind: "unknown", outcomeKnown: true });
  });

  it("[M2] is an unknown outcome when the client itself throws", async () => {
    const broken = { leases: { answers: { commit: () => Promise.reject(new Error("broken")) } } };
    const remote = new ClientLeases(broken as unknown as ConstructorParameters<typeof ClientLeases>[0]);
    expect(await remote.commit(UUID)).toMatchObject({
      kind: "unknown",
      error: "broken",
      outcomeKnown: false,
    });
  });

  it("[Q9] returns the positions of the lease's shards", async () => {
    const placed = { status: 200, json: { lease: leaseOf("GRANTED"), positions: { 3: 4_711, 12: 88 } } };
    const { leases: remote } = leases([placed]);
    const positions = new Map([
      [3, 4_711],
      [12, 88],
    ]);
    const expected = { kind: "ok", value: "GRANTED", positions };
    expect(await remote.begin(UUID, {})).toEqual(expected);
    expect(await remote.commit(UUID)).toEqual(expected);
    expect(await remote.rollback(UUID)).toEqual(expected);
  });

  it("returns the state of the lease", async () => {
    const batch = { destroys: [{ bucket: { type: "ROUTES", value: "a/b" } }] } as const;
    const { leases: remote, sent } = leases([granted, committed, rolledBack, committed]);
    expect(await remote.begin(UUID, batch)).toEqual({ kind: "ok", value: "GRANTED" });
    expect(await remote.commit(UUID)).toEqual({ kind: "ok", value: "COMMITTED" });
    expect(await remote.rollback(UUID)).toEqual({ kind: "ok", value: "ROLLED_BACK" });
    expect(await remote.get(UUID)).toEqual({ kind: "ok", value: "COMMITTED" });
    const path = `http://leasehold.test/v1/cells/7/leases/${UUID}`;
    expect(sent.map(({ method, url, body }) => [method, url, body])).toEqual([
      ["PUT", path, JSON.stringify(batch)],
      ["POST", `${path}/commit`, undefined],
      ["POST", `${path}/rollback`, undefined],
      ["GET", path, undefined],
    ]);
  });

  it("returns a refusal with its details", async () => {
    const conflicts = [
      {
        list: "creates",
        index: 1,
        bucket: { type: "ROUTES", value: "a" },
        kind: "taken",
        owner: "other",
        retry_after_ms: 7,
      },
    ];
    const { leases: remote } = leases([
      problem(409, "ALREADY_EXISTS", { detail: "1 of 2", conflicts }, { "retry-after": "2" }),
    ]);
    expect(await remote.begin(UUID, {})).toEqual({
      kind: "refused",
      status: 409,
      code: "ALREADY_EXISTS",
      detail: "1 of 2",
      retryable: false,
      retryAfterMs: 2_000,
      requestId: "request-1",
      outcomeKnown: true,
      conflicts,
    });
  });

  it("reports an unknown outcome for a refusal after an unanswered attempt", async () => {
    const { leases: remote } = leases([unavailable, problem(409, "ABORTED")]);
    expect(await remote.begin(UUID, {})).toMatchObject({
      kind: "refused",
      code: "ABORTED",
      outcomeKnown: false,
    });
  });

  it.each([
    { what: "no connection", reply: new TypeError("fetch failed") },
    { what: "status 503", reply: unavailable },
    { what: "an unknown state", reply: { status: 200, json: { lease: leaseOf("MAYBE") } } },
  ])("reports an unknown outcome for $what", async ({ reply }) => {
    const { leases: remote } = leases([reply], { retries: 0 });
    for (const call of [remote.begin(UUID, {}), remote.commit(UUID), remote.rollback(UUID)])
      expect(await call).toMatchObject({ kind: "unknown", outcomeKnown: false });
    expect(await remote.get(UUID)).toMatchObject({ kind: "unknown" });
  });

  it("ends when its signal aborts", async () => {
    const { leases: remote, sent } = leases([granted]);
    const signal = AbortSignal.abort(new Error("died"));
    for (const call of [
      remote.begin(UUID, {}, { signal }),
      remote.commit(UUID, { signal }),
      remote.rollback(UUID, { signal }),
    ]) {
      expect(await call).toMatchObject({ kind: "unknown", why: "cancelled", outcomeKnown: true });
    }
    expect(sent).toEqual([]);
  });
});

it("refuses an id that cannot be part of a URL, and sends nothing", async () => {
  const { leases: remote, sent } = leases([granted]);
  for (const call of [remote.begin("..", {}), remote.commit(""), remote.rollback("."), remote.get("..")])
    expect(await call).toMatchObject({
      kind: "refused",
      status: 0,
      code: "INVALID_ARGUMENT",
      field: "uuid",
      outcomeKnown: true,
    });
  expect(sent).toEqual([]);
});

it("keeps the first cause of an unknown outcome", async () => {
  const cause = new TypeError("fetch failed");
  const { leases: remote } = leases([cause], { retries: 0 });
  expect(await remote.commit(UUID)).toMatchObject({ kind: "unknown", cause });
});

describe("list", () => {
  it("requests one page and reads the ages", async () => {
    const { leases: remote, sent } = leases([
      { status: 200, json: { leases: [leaseOf("GRANTED")], next_page_token: "n" } },
    ]);
    const page = await remote.list({ pageToken: "p+/", pageSize: 50, createdAfterMs: 0 });
    expect(page).toEqual({ leases: [{ uuid: UUID, ageMs: 12, idleMs: 12 }], nextPageToken: "n" });
    expect(sent).toHaveLength(1);
    const { searchParams } = new URL(sent[0]?.url ?? "");
    expect(Object.fromEntries(searchParams)).toEqual({
      page_size: "50",
      page_token: "p+/",
      created_after: "1970-01-01T00:00:00.000Z",
    });
  });

  const { age_ms: _age, ...ageless } = leaseOf("GRANTED");

  it.each([
    { what: "a refusal", reply: problem(403, "PERMISSION_DENIED") },
    { what: "a document without leases", reply: { status: 200, json: { next_page_token: "" } } },
    {
      what: "a lease without an age",
      reply: { status: 200, json: { leases: [ageless], next_page_token: "" } },
    },
    { what: "a page without a token", reply: { status: 200, json: { leases: [] } } },
  ])("throws on $what instead of returning a short page", async ({ reply }) => {
    const { leases: remote } = leases([reply], { retries: 0 });
    await expect(remote.list({ pageToken: "", pageSize: 10 })).rejects.toThrow();
  });
});

describe("a rollback that no caller waits for", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());
  const never = new AbortController().signal;
  const down = Array.from({ length: 12 }, () => unavailable);

  it("[L2] is tried again for longer than the client does", async () => {
    const { leases: remote, sent } = leases([...down, rolledBack], { retries: 0 });
    const ended = rollBackPatiently(remote, UUID, never);
    await vi.advanceTimersByTimeAsync(6_000);
    expect(await ended).toEqual({ kind: "ok", value: "ROLLED_BACK" });
    expect(sent).toHaveLength(13);
  });

  it("[L2] ends after 10 s", async () => {
    const { leases: remote, sent } = leases([unavailable], { retries: 0 });
    const ended = rollBackPatiently(remote, UUID, never);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(await ended).toMatchObject({ kind: "unknown" });
    expect(sent).toHaveLength(20);
    expect(vi.getTimerCount()).toBe(0);
  });

  it("[L2] is not repeated when it was refused", async () => {
    const { leases: remote, sent } = leases([problem(409, "FAILED_PRECONDITION")], { retries: 0 });
    expect(await rollBackPatiently(remote, UUID, never)).toMatchObject({ kind: "refused" });
    expect(sent).toHaveLength(1);
  });

  it("[L2] ends at once when it is given up, between two attempts and within one", async () => {
    for (const replies of [[unavailable], [hangs]]) {
      const givesUp = new AbortController();
      const { leases: remote, sent } = leases(replies, { retries: 0 });
      const ended = rollBackPatiently(remote, UUID, givesUp.signal);
      await vi.advanceTimersByTimeAsync(100);
      givesUp.abort();
      expect(await ended).toMatchObject({ kind: "unknown" });
      expect(sent).toHaveLength(1);
      expect(vi.getTimerCount()).toBe(0);
    }
  });
});
