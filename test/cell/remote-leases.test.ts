import { describe, expect, it } from "vitest";
import { Connection, type ConnectionOptions, type Fetch } from "../../src/cell/connection.ts";
import { HttpLeases } from "../../src/cell/remote-leases.ts";

const UUID = "01890000-0000-7000-8000-000000000001";
const granted = { lease: { uuid: UUID, state: "GRANTED" } };

interface Sent {
  method: string;
  url: string;
  body: string | undefined;
  headers: Record<string, string>;
}

type Reply = { status: number; json?: unknown; text?: string; headers?: Record<string, string> } | Error;

/** Answers with the replies in turn, the last one for good. */
function leases(replies: Reply[], options: Partial<ConnectionOptions> = {}): { leases: HttpLeases; sent: Sent[] } {
  const sent: Sent[] = [];
  const fake: Fetch = async (url, { method, body, headers }) => {
    sent.push({ method, url, body, headers });
    const reply = replies[Math.min(sent.length, replies.length) - 1];
    if (reply === undefined || reply instanceof Error) throw reply ?? new Error("no reply");
    const given = new Headers(reply.headers ?? { "content-type": reply.status < 400 ? "application/json" : "application/problem+json" });
    return { status: reply.status, headers: given, text: async () => reply.text ?? JSON.stringify(reply.json) };
  };
  const connection = new Connection({ url: "http://leasehold.test/", key: "secret", fetch: fake, pauseMs: 1, ...options });
  return { leases: new HttpLeases(connection, "cell/1"), sent };
}

describe("outcomes", () => {
  it("begins with the UUID in the path and the key in the header", async () => {
    const { leases: remote, sent } = leases([{ status: 201, json: granted }]);
    const batch = { destroys: [{ bucket: { type: "ROUTES", value: "a/b" } }] };
    expect(await remote.begin(UUID, batch)).toEqual({ kind: "ok", value: "GRANTED" });
    expect(sent).toEqual([
      {
        method: "PUT",
        url: `http://leasehold.test/v1/cells/cell%2F1/leases/${UUID}`,
        body: JSON.stringify(batch),
        headers: { authorization: "Bearer secret", accept: "application/json", "content-type": "application/json" },
      },
    ]);
  });

  it("sends no body with a decision", async () => {
    const { leases: remote, sent } = leases([{ status: 200, json: { lease: { state: "COMMITTED" } } }]);
    expect(await remote.commit(UUID)).toEqual({ kind: "ok", value: "COMMITTED" });
    expect(sent[0]).toMatchObject({ method: "POST", body: undefined });
    expect(sent[0]?.headers).not.toHaveProperty("content-type");
  });

  it("repeats the same call while the outcome is unknown", async () => {
    const { leases: remote, sent } = leases([
      new TypeError("fetch failed"),
      { status: 503, json: { code: "UNAVAILABLE", detail: "later" } },
      { status: 200, text: '{"lea' },
      { status: 200, json: granted },
    ]);
    expect(await remote.begin(UUID, {})).toEqual({ kind: "ok", value: "GRANTED" });
    expect(sent).toHaveLength(4);
    expect(new Set(sent.map(({ method, url, body }) => `${method} ${url} ${body}`)).size).toBe(1);
  });

  it("does not repeat a refusal, and passes on why", async () => {
    const problem = {
      code: "ALREADY_EXISTS",
      detail: "1 of 2",
      conflicts: [{ list: "creates", index: 1, bucket: { type: "ROUTES", value: "a" }, kind: "taken", owner: "other", retry_after_ms: 7 }],
    };
    const { leases: remote, sent } = leases([
      { status: 409, json: problem, headers: { "content-type": "application/problem+json", "retry-after": "2" } },
    ]);
    expect(await remote.begin(UUID, {})).toEqual({
      kind: "refused",
      status: 409,
      code: "ALREADY_EXISTS",
      detail: "1 of 2",
      retryAfterMs: 2_000,
      conflicts: [{ list: "creates", index: 1, bucket: { type: "ROUTES", value: "a" }, kind: "taken", owner: "other", retryAfterMs: 7 }],
    });
    expect(sent).toHaveLength(1);
  });

  it.each([
    { what: "a proxy's 404", reply: { status: 404, text: "<html>", headers: { "content-type": "text/html" } } },
    { what: "a 409 that is no problem document", reply: { status: 409, json: { code: "ABORTED" }, headers: { "content-type": "application/json" } } },
    { what: "a problem document without a code", reply: { status: 409, json: {} } },
    { what: "a redirect", reply: { status: 302, text: "" } },
    { what: "a fault", reply: { status: 500, json: { code: "INTERNAL", detail: "" } } },
    { what: "another document", reply: { status: 200, json: { ok: true } } },
    { what: "an unheard-of state", reply: { status: 200, json: { lease: { state: "MAYBE" } } } },
  ])("takes $what for an unknown outcome", async ({ reply }) => {
    const { leases: remote, sent } = leases([reply], { deadlineMs: 20 });
    expect(await remote.commit(UUID)).toMatchObject({ kind: "unknown" });
    expect(sent.length).toBeGreaterThan(1);
  });
});

describe("time", () => {
  const hangs: Fetch = (_url, { signal }) =>
    new Promise((_, reject) => {
      signal.addEventListener("abort", () => reject(signal.reason as Error));
    });

  it("gives up at the deadline, with all its tries", async () => {
    let tries = 0;
    const connection = new Connection({
      url: "http://x",
      key: "k",
      deadlineMs: 150,
      tryMs: 40,
      pauseMs: 1,
      fetch: (...call) => ((tries += 1), hangs(...call)),
    });
    const started = performance.now();
    expect(await new HttpLeases(connection, "1").rollback(UUID)).toMatchObject({ kind: "unknown" });
    expect(performance.now() - started).toBeLessThan(1_000);
    expect(tries).toBeGreaterThan(1);
  });

  it("ends at once when its owner does", async () => {
    const owner = new AbortController();
    const connection = new Connection({ url: "http://x", key: "k", fetch: hangs, signal: owner.signal });
    const call = new HttpLeases(connection, "1").commit(UUID);
    owner.abort(new Error("died"));
    expect(await call).toMatchObject({ kind: "unknown" });
  });
});

describe("list", () => {
  it("asks for a page and reads the ages", async () => {
    const { leases: remote, sent } = leases([{ status: 200, json: { leases: [{ uuid: UUID, age_ms: 12 }], next_page_token: "n" } }]);
    const page = await remote.list({ pageToken: "p+/", pageSize: 50, createdAfterMs: 0 });
    expect(page).toEqual({ leases: [{ uuid: UUID, ageMs: 12 }], nextPageToken: "n" });
    const { searchParams } = new URL(sent[0]?.url ?? "");
    expect(Object.fromEntries(searchParams)).toEqual({ page_size: "50", page_token: "p+/", created_after: "1970-01-01T00:00:00.000Z" });
  });

  it.each([
    { what: "a refusal", reply: { status: 403, json: { code: "PERMISSION_DENIED", detail: "no" } } },
    { what: "a document without leases", reply: { status: 200, json: { next_page_token: "" } } },
    { what: "a lease without an age", reply: { status: 200, json: { leases: [{ uuid: UUID }], next_page_token: "" } } },
    { what: "a page without a token", reply: { status: 200, json: { leases: [] } } },
  ])("throws on $what: never a short page", async ({ reply }) => {
    const { leases: remote } = leases([reply], { deadlineMs: 10 });
    await expect(remote.list({ pageToken: "", pageSize: 10 })).rejects.toThrow("cannot be listed");
  });
});
