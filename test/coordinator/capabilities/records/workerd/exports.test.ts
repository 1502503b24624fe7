/**
 * Tests of an export's stream that watch the calls of objects. Its contents are tested in
 * test/suites/conformance.
 */
import { v4 as newUuid } from "uuid";
import { beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { createClient } from "../../../../../src/users/client/index.ts";
import { problem } from "../../../../../src/coordinator/api/contract/schemas.ts";
import { linesIn } from "../../../../suites/conformance/lines.ts";
import { Api, env, keyOf, signedKey, startDeployment } from "../../../../support/workerd/api.ts";
import { watchedNamespace } from "../../../../support/workerd/counting.ts";
import { hang, watchDeadlines } from "../../../../support/workerd/hang.ts";

const PATH = "/v1/cells/1/records/export?source_type=RAILS_TABLE_NAMESPACES";
const RECORDS = 12;
const small = { LEASEHOLD_MAX_PAGE_ITEMS: "2" };

watchDeadlines();

async function own(api: Api, cell: string, count: number): Promise<void> {
  const uuid = newUuid();
  const creates = Array.from({ length: count }, (_, index) => ({
    bucket: { type: "ROUTES", value: `of-${cell}-${index}` },
    subject: { type: "NAMESPACE", id: "1" },
    source: { type: "RAILS_TABLE_NAMESPACES", id: String(index + 1) },
  }));
  await api.json(201, "PUT", `/v1/cells/${cell}/leases/${uuid}`, { key: `cell ${cell}`, body: { creates } });
  await api.json(200, "POST", `/v1/cells/${cell}/leases/${uuid}/commit`, { key: `cell ${cell}` });
}

beforeAll(async () => own(await startDeployment("1", "2"), "1", RECORDS));

type Fate = (call: number) => Promise<unknown> | undefined;

/**
 * An application with pages of two records. It counts the pages, because the ledger is asked before each.
 * `fate` decides how the calls of one shard end.
 */
function watched(fate: Fate = () => undefined): { api: Api; pages: () => number } {
  const calls = { shard: 0, ledger: 0 };
  const CLAIM_SHARD = watchedNamespace("CLAIM_SHARD", env.CLAIM_SHARD, (call, object) => {
    return call === "CLAIM_SHARD.listRecords" && object === "shard-0" ? fate((calls.shard += 1)) : undefined;
  });
  const CELL_LEDGER = watchedNamespace("CELL_LEDGER", env.CELL_LEDGER, (call) => {
    if (call === "CELL_LEDGER.authorize") calls.ledger += 1;
  });
  return { api: new Api({ CLAIM_SHARD, CELL_LEDGER, ...small }), pages: () => calls.ledger };
}

/** A reader that takes one line at a time, and reads no further than asked. */
async function opened(
  api: Api,
  key: string,
): Promise<{ status: number; line: () => Promise<unknown>; leave: () => Promise<void> }> {
  const { status, body } = await api.fetch(api.url + PATH, { headers: { authorization: `Bearer ${key}` } });
  if (body === null) throw new Error("the answer has no body");
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  const waiting: string[] = [];
  const line = async (): Promise<unknown> => {
    while (waiting.length === 0) {
      const { value, done } = await reader.read();
      if (done) return undefined;
      waiting.push(...value.split("\n").filter((each) => each !== ""));
    }
    return JSON.parse(waiting.shift() ?? "");
  };
  return { status, line, leave: () => reader.cancel() };
}

const later = (): Promise<void> => new Promise((resume) => setTimeout(resume, 100));

describe("a reader", () => {
  test("that reads slowly has at most one page fetched in advance", async () => {
    const { api, pages } = watched();
    const { line } = await opened(api, await keyOf("cell 1"));
    for (let read = 0; read <= RECORDS; read += 1) {
      await line();
      await later();
      // The pages read so far, and one that may wait in the pipe.
      expect(pages()).toBeLessThanOrEqual(Math.ceil(Math.max(1, read) / 2) + 1);
    }
    expect(await line()).toEqual({ end: "complete" });
  });

  test("that leaves after the first lines causes no further fetch", async () => {
    const { api, pages } = watched();
    const { line, leave } = await opened(api, await keyOf("cell 1"));
    expect(await line()).toMatchObject({ as_of: expect.any(String) });
    expect(await line()).toMatchObject({ record: { source: { id: "1" } }, cursor: "1" });
    await leave();
    await later();
    const asked = pages();
    expect(asked).toBeLessThanOrEqual(2);
    await later();
    expect(pages()).toBe(asked);
  });

  test("that never reads has one page fetched", async () => {
    const { api, pages } = watched();
    const { status } = await api.fetch(api.url + PATH, {
      headers: { authorization: `Bearer ${await keyOf("cell 1")}` },
    });
    expect(status).toBe(200);
    await later();
    expect(pages()).toBe(1);
  });
});

describe.each([
  ["fails", 503, "UNAVAILABLE", () => Promise.reject(new Error("secret internals"))],
  ["hangs", 504, "DEADLINE_EXCEEDED", hang],
] as const)("a shard that %s", (_, status, code, fate) => {
  test("at the start gives a problem and no stream", async () => {
    const { api } = watched(fate);
    expect(await api.problem(status, "GET", PATH, { key: "cell 1" })).toMatchObject({
      code,
      retryable: true,
    });
  });

  test("in the middle ends the stream with a problem, and is logged", async () => {
    const log = vi.spyOn(console, "log").mockImplementation(() => {});
    const { api } = watched((call) => (call > 3 ? fate() : undefined));
    const received = await api.send("GET", PATH, {
      key: "cell 1",
      headers: { "x-request-id": "the-request" },
    });
    const logged = log.mock.calls.map(([line]) => String(line));
    log.mockRestore();
    expect(received.status).toBe(200);
    const lines = linesIn(received.text) as Record<string, unknown>[];
    expect(lines.slice(1, -1)).toMatchObject(
      Array.from({ length: lines.length - 2 }, (__, index) => ({ cursor: String(index + 1) })),
    );
    expect(lines.length).toBeGreaterThan(3);
    expect(lines.length).toBeLessThan(RECORDS + 2);
    const last = problem.parse(lines.at(-1)?.["error"]);
    expect(last).toMatchObject({
      status,
      code,
      retryable: true,
      request_id: received.headers.get("x-request-id"),
      ...(status === 503 ? { retry_after_ms: 1_000 } : {}),
    });
    expect(received.text).not.toContain("internals");
    const digits = last.request_id.replaceAll("-", "");
    expect(logged).toContainEqual(
      JSON.stringify({
        event: "stream_failed",
        request_id: last.request_id,
        caller_request_id: "the-request",
        trace_id: digits,
        span_id: digits.slice(-16),
        route: "exportRecords",
        code,
      }),
    );
    expect(logged.filter((line) => line.includes('"event":"request"'))).toHaveLength(1);
  });
});

describe("the client, in workerd,", () => {
  const clientOf = async (api: Api) =>
    createClient({ url: api.url, key: await keyOf("cell 1"), cell: "1", fetch: api.fetch, backoffMs: 1 });
  const ids = Array.from({ length: RECORDS }, (_, index) => String(index + 1));

  test("gives every record once, even if a shard sometimes fails and answers are short", async () => {
    const { api } = watched((call) => (call % 4 === 0 ? Promise.reject(new Error("down")) : undefined));
    const client = await clientOf(new Api({ ...api.env, LEASEHOLD_EXPORT_RECORDS: "7" }));
    const read: string[] = [];
    for await (const { source } of client.records.export({ sourceType: "RAILS_TABLE_NAMESPACES" }))
      read.push(source.id);
    expect(read).toEqual(ids);
  });

  test("ends the stream when the caller leaves the loop", async () => {
    const { api, pages } = watched();
    const all = (await clientOf(api)).records.export({ sourceType: "RAILS_TABLE_NAMESPACES" });
    for await (const { source } of all) if (source.id === "2") break;
    await later();
    expect(pages()).toBeLessThanOrEqual(2);
    expect(all.cursor).toBe("2");
  });
});

test("an unexpected error ends the stream with INTERNAL, without the error's text", async () => {
  const log = vi.spyOn(console, "log").mockImplementation(() => {});
  const nonsense = Promise.resolve({
    ok: true,
    value: { records: [{ createdAtMs: Number.NaN, source: { id: "99" } }], complete: true, through: "" },
  });
  const { api } = watched((call) => (call > 2 ? nonsense : undefined));
  const { text } = await api.send("GET", PATH, { key: "cell 1" });
  log.mockRestore();
  expect(linesIn(text).at(-1)).toMatchObject({ error: { code: "INTERNAL", status: 500 } });
  expect(text).not.toMatch(/RangeError|Invalid time/);
});

test("a key that expires during an export gets no further page", async () => {
  const { api } = watched();
  const exp = Math.ceil(Date.now() / 1_000) + 60;
  const { line } = await opened(api, await signedKey({ role: "cell", cell: "1", exp }));
  for (let read = 0; read < 3; read += 1) await line();
  vi.useFakeTimers({ toFake: ["Date"], now: exp * 1_000 + 1 });
  onTestFinished(() => void vi.useRealTimers());
  let last: unknown;
  for (let read = 0; read < 6; read += 1) last = (await line()) ?? last;
  expect(last).toMatchObject({ error: { status: 401, code: "UNAUTHENTICATED", reason: "KEY_EXPIRED" } });
});

describe("a key that is revoked during an export gets no further page:", () => {
  test("a cell key, because its ledger is asked before each page", async () => {
    const id = newUuid();
    const { api } = watched();
    const { line } = await opened(api, await signedKey({ role: "cell", cell: "1", id }));
    for (let read = 0; read < 3; read += 1) await line();
    await new Api().json(200, "POST", `/v1/admin/keys/${id}/revoke`, { body: { cell_id: "1" } });
    let last: unknown;
    for (let read = 0; read < 6; read += 1) last = (await line()) ?? last;
    expect(last).toMatchObject({ error: { status: 401, code: "UNAUTHENTICATED", reason: "KEY_REVOKED" } });
  });

  test("an operator key, as soon as this isolate has read the directory", async () => {
    const id = newUuid();
    const api = new Api({ ...small, LEASEHOLD_DIRECTORY_CACHE_MS: "0" });
    const { line } = await opened(api, await signedKey({ id }));
    for (let read = 0; read < 3; read += 1) await line();
    await new Api().json(200, "POST", `/v1/admin/keys/${id}/revoke`, {});
    let last: unknown;
    for (let read = 0; read < 6; read += 1) last = (await line()) ?? last;
    expect(last).toMatchObject({ error: { status: 401, code: "UNAUTHENTICATED", reason: "KEY_REVOKED" } });
  });
});

describe("too many reads of the cell:", () => {
  const busy = (from: number): Api => {
    let asked = 0;
    const refusal = {
      code: "RESOURCE_EXHAUSTED",
      reason: "TOO_MANY_READS",
      detail: "too many reads",
      retryAfterMs: 2_500,
    };
    const CELL_LEDGER = watchedNamespace("CELL_LEDGER", env.CELL_LEDGER, (call) => {
      if (call !== "CELL_LEDGER.authorize") return undefined;
      asked += 1;
      return asked >= from ? Promise.resolve({ ok: false, refusal }) : undefined;
    });
    return new Api({ CELL_LEDGER, ...small });
  };

  test("the first page gets 429", async () => {
    const refused = await busy(1).problem(429, "GET", PATH, { key: "cell 1" });
    expect(refused).toMatchObject({ reason: "TOO_MANY_READS", retryable: true });
    expect(refused.headers.get("retry-after")).toBe("3");
  });

  test("a later page makes the answer end with a cursor", async () => {
    const { text } = await busy(3).send("GET", PATH, { key: "cell 1" });
    const lines = linesIn(text) as { cursor?: string }[];
    expect(lines.at(-1)).toEqual({ end: "continue", cursor: lines.at(-2)?.cursor });
    expect(lines.length).toBeLessThan(RECORDS);
  });
});

test("an answer ends with a cursor before it exceeds the platform's limit of calls", async () => {
  await own(new Api(), "2", 250);
  let calls = 0;
  const CLAIM_SHARD = watchedNamespace("CLAIM_SHARD", env.CLAIM_SHARD, () => void (calls += 1));
  const CELL_LEDGER = watchedNamespace("CELL_LEDGER", env.CELL_LEDGER, () => void (calls += 1));
  const api = new Api({ CLAIM_SHARD, CELL_LEDGER, LEASEHOLD_MAX_PAGE_ITEMS: "1" });
  const { text } = await api.send("GET", PATH.replace("cells/1", "cells/2"), { key: "cell 2" });
  const [end, last] = linesIn(text).toReversed() as { cursor: string }[];
  expect(end).toEqual({ end: "continue", cursor: last?.cursor });
  expect(calls).toBeGreaterThan(800);
  expect(calls).toBeLessThan(1_000);
});
