import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect, it } from "vitest";
import {
  CancelledError,
  createClient,
  UnavailableError,
  type Client,
  type ClientOptions,
  type Export,
  type Fetch,
} from "../../../src/users/client/index.ts";
import { LeaseholdError } from "../../../src/users/client/index.ts";
import { busy, problem, recordOf, responseOf, unavailable, type Reply } from "./fake.ts";

type Line = Record<string, unknown>;

/** Records with several per source id, and with letters of several bytes. */
const SOURCES = ["1", "2", "2", "2", "10", "é", "é", "z"];
const RECORDS = SOURCES.map((id, index) => ({
  ...recordOf(`näme-${index}`),
  uuid: `uuid-${index}`,
  source: { type: "RAILS_TABLE_ROUTES", id },
}));
const TIME = "2026-11-20T12:00:00.000Z";

const cursorOf = (index: number, from: string): string => {
  const id = SOURCES[index] ?? "";
  if (SOURCES[index + 1] !== id) return id;
  const before = SOURCES.findLastIndex((each, at) => at < index && each !== id);
  return SOURCES[before] ?? from;
};

/** A coordinator's answer. */
function linesFrom(from: string, most = SOURCES.length): Line[] {
  const first = SOURCES.lastIndexOf(from) + 1;
  const rest = RECORDS.map((record, index) => ({ record, cursor: cursorOf(index, from) })).slice(first);
  // At least `most` records, and all records of a source id.
  const last = rest.findIndex(
    ({ cursor, record }, index) => index + 1 >= most && cursor === record.source.id,
  );
  const given = rest.slice(0, last < 0 ? rest.length : last + 1);
  const end =
    given.length === rest.length ? { end: "complete" } : { end: "continue", cursor: given.at(-1)?.cursor };
  return [{ as_of: TIME }, ...given, end];
}

const bytesOf = (lines: readonly Line[]): Uint8Array =>
  new TextEncoder().encode(lines.map((line) => `${JSON.stringify(line)}\n`).join(""));

/** What happens after the last byte of the body. */
type StreamEnd = "closes" | "breaks" | "hangs";

interface Streamed {
  bytes: Uint8Array;
  streamEnd?: StreamEnd;
  chunkBytes?: number;
}

interface Server {
  client: Client;
  /** The cursor from which each call began. */
  cursors: string[];
  /** The number of cancelled bodies. */
  cancelled: () => number;
  /** The number of chunks that were read. */
  pulled: () => number;
}

/** Makes a client of a coordinator that answers each call with `answer`. */
function serve(
  answer: (from: string, call: number) => Streamed | Reply | Error,
  options: Partial<ClientOptions> = {},
): Server {
  const cursors: string[] = [];
  const counts = { cancelled: 0, pulled: 0 };
  const fetch: Fetch = async (url) => {
    const from = new URL(url).searchParams.get("source_id_gt") ?? "";
    cursors.push(from);
    const made = answer(from, cursors.length);
    if (made instanceof Error) throw made;
    return "status" in made ? responseOf(made) : streamOf(made, counts);
  };
  const client = createClient({
    url: "http://leasehold.test",
    key: "secret",
    cell: "7",
    backoffMs: 1,
    fetch,
    ...options,
  });
  return { client, cursors, cancelled: () => counts.cancelled, pulled: () => counts.pulled };
}

function streamOf(
  { bytes, streamEnd = "closes", chunkBytes = bytes.length }: Streamed,
  counts: { cancelled: number; pulled: number },
) {
  let at = 0;
  const body = new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        counts.pulled += 1;
        if (at < bytes.length) return controller.enqueue(bytes.slice(at, (at += chunkBytes)));
        if (streamEnd === "closes") return controller.close();
        if (streamEnd === "breaks") return controller.error(new TypeError("terminated"));
        return new Promise<never>(() => {});
      },
      cancel: () => void (counts.cancelled += 1),
    },
    { highWaterMark: 0 },
  );
  return {
    status: 200,
    headers: new Headers(),
    body,
    text: () => Promise.reject(new Error("the whole text was asked for")),
  };
}

const whole = (from: string): Streamed => ({ bytes: bytesOf(linesFrom(from)) });
const open = (client: Client, more: object = {}): Export =>
  client.records.export({ sourceType: "RAILS_TABLE_ROUTES", ...more });

async function read(from: AsyncIterable<unknown>): Promise<unknown[]> {
  const records: unknown[] = [];
  for await (const record of from) records.push(record);
  return records;
}

async function failure(from: AsyncIterable<unknown>): Promise<{ records: unknown[]; error: LeaseholdError }> {
  const records: unknown[] = [];
  try {
    for await (const record of from) records.push(record);
  } catch (error) {
    if (error instanceof LeaseholdError) return { records, error };
    throw error;
  }
  throw new Error("the export ended well");
}

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

const later = (ms: number): Promise<void> => new Promise((resume) => setTimeout(resume, ms));

describe("an export", () => {
  it("yields every record in order, and sends nothing before the loop starts", async () => {
    const { client, cursors } = serve(whole);
    const all = open(client);
    expect(cursors).toEqual([]);
    expect(all).toMatchObject({ cursor: "", asOf: undefined });
    expect(await read(all)).toEqual(RECORDS);
    expect(all).toMatchObject({ cursor: "z", asOf: TIME });
    expect(cursors).toEqual([""]);
  });

  it("sends its range in the query, and accepts lines of JSON", async () => {
    const urls: string[] = [];
    const fetch: Fetch = async (url) => (urls.push(url), responseOf(problem(403, "PERMISSION_DENIED")));
    const client = createClient({ url: "http://leasehold.test", key: "secret", cell: "7", fetch });
    await failure(open(client, { sourceIdGt: "5", sourceIdLte: "9", bucketTypes: ["ROUTES", "EMAILS"] }));
    const { pathname, searchParams } = new URL(urls[0] ?? "");
    expect(pathname).toBe("/v1/cells/7/records/export");
    expect([...searchParams]).toEqual([
      ["source_type", "RAILS_TABLE_ROUTES"],
      ["source_id_lte", "9"],
      ["bucket_type", "ROUTES"],
      ["bucket_type", "EMAILS"],
      ["source_id_gt", "5"],
    ]);
  });

  it("keeps no records in memory, however long the answer is", async () => {
    const [chunkBytes, chunks] = [1 << 20, 16];
    const filler = { filler: "x".repeat(chunkBytes - 16) };
    const last = bytesOf([{ end: "complete" }]);
    const line = bytesOf([filler]);
    const kept: number[] = [];
    let at = 0;
    const body = new ReadableStream<Uint8Array>({
      pull(controller) {
        collectGarbage();
        kept.push(process.memoryUsage().arrayBuffers);
        controller.enqueue(at++ < chunks ? line.slice() : last);
        if (at > chunks) controller.close();
      },
    });
    const fetch: Fetch = async () => ({ status: 200, headers: new Headers(), body, text: async () => "" });
    const client = createClient({ url: "http://leasehold.test", key: "secret", cell: "7", fetch });
    expect(await read(open(client))).toEqual([]);
    expect(Math.max(...kept) - (kept[0] ?? 0)).toBeLessThan((chunks / 4) * chunkBytes);
  });

  it("waits for the `retry_after_ms` of an error line", async () => {
    const waits: number[] = [];
    const broken = [
      ...linesFrom("").slice(0, 3),
      { error: { status: 503, code: "UNAVAILABLE", detail: "down", retry_after_ms: 40 } },
    ];
    const hooks = { onRetry: ({ waitMs }: { waitMs: number }) => void waits.push(waitMs) };
    const { client } = serve((from, call) => (call === 1 ? { bytes: bytesOf(broken) } : whole(from)), {
      hooks,
    });
    expect(await read(open(client))).toEqual(RECORDS);
    expect(waits).toHaveLength(1);
    expect(waits[0]).toBeGreaterThanOrEqual(40);
  });

  it("sends an empty upper bound, so that the coordinator refuses it", async () => {
    const urls: string[] = [];
    const fetch: Fetch = async (url) => (urls.push(url), responseOf(problem(400, "INVALID_ARGUMENT")));
    const client = createClient({ url: "http://leasehold.test", key: "secret", cell: "7", fetch });
    await failure(open(client, { sourceIdLte: "" }));
    expect(urls).toEqual([
      "http://leasehold.test/v1/cells/7/records/export?source_type=RAILS_TABLE_ROUTES&source_id_lte=",
    ]);
  });

  it.each([1, 2, 7, 100])("comes in chunks of %i bytes", async (chunkBytes) => {
    const { client } = serve((from) => ({ ...whole(from), chunkBytes }));
    expect(await read(open(client))).toEqual(RECORDS);
  });

  it("is empty when there are no records", async () => {
    const { client } = serve(() => ({ bytes: bytesOf([{ as_of: TIME }, { end: "complete" }]) }));
    const none = open(client, { sourceIdGt: "5" });
    expect(await read(none)).toEqual([]);
    expect(none).toMatchObject({ cursor: "5", asOf: TIME });
  });

  it("has the cursor of the current record, from which another process can continue", async () => {
    const { client } = serve(whole);
    const cursors: string[] = [];
    const all = open(client);
    for await (const record of all) cursors.push(`${record.source.id}: ${all.cursor}`);
    expect(cursors).toEqual(["1: 1", "2: 1", "2: 1", "2: 2", "10: 10", "é: 10", "é: é", "z: z"]);
    expect(await read(open(client, { sourceIdGt: "10" }))).toEqual(RECORDS.slice(5));
  });

  it("reads no more than the loop asks for", async () => {
    const { client, pulled } = serve((from) => ({ ...whole(from), chunkBytes: 50 }));
    for await (const record of open(client)) {
      const line = SOURCES.findIndex((_, index) => RECORDS[index]?.uuid === record.uuid) + 2;
      expect(pulled()).toBeLessThanOrEqual(Math.ceil(bytesOf(linesFrom("").slice(0, line)).length / 50));
    }
  });
});

describe("continues", () => {
  const total = bytesOf(linesFrom("")).length;

  it.each<StreamEnd>(["closes", "breaks", "hangs"])(
    "after a body that %s at any byte, with every record once",
    async (streamEnd) => {
      const attemptMs = streamEnd === "hangs" ? 50 : 6_000;
      const positions = Array.from({ length: total }, (_, at) => at);
      const reads = positions.map(async (at) => {
        const { client, cursors } = serve(
          (from, call) =>
            call === 1 ? { bytes: bytesOf(linesFrom(from)).slice(0, at), streamEnd } : whole(from),
          {
            attemptMs,
          },
        );
        return [at, await read(open(client)), cursors.length];
      });
      // This includes a body that lacks only its last line feed: its last line is not complete.
      expect(await Promise.all(reads)).toEqual(positions.map((at) => [at, RECORDS, 2]));
    },
  );

  it("after several bodies that each yield a few more records", async () => {
    const { client, cursors } = serve(
      (from) => ({ bytes: bytesOf(linesFrom(from).slice(0, 4)), streamEnd: "breaks" }),
      { retries: 1 },
    );
    expect(await read(open(client))).toEqual(RECORDS);
    expect(cursors).toEqual(["", "1", "2", "é"]);
  });

  it("whenever the coordinator ends an answer with `continue`", async () => {
    const { client, cursors } = serve((from) => ({ bytes: bytesOf(linesFrom(from, 1)) }), { retries: 0 });
    expect(await read(open(client))).toEqual(RECORDS);
    expect(cursors).toEqual(["", "1", "2", "10", "é"]);
  });

  it.each<[string, (from: string) => Streamed | Reply | Error]>([
    ["a part that cannot be reached", () => unavailable],
    ["a limit", () => busy],
    ["a connection that fails", () => new TypeError("fetch failed")],
    [
      "a part that fails in the middle",
      (from) => ({ bytes: bytesOf([...linesFrom(from).slice(0, 1), { error: unavailable.json }]) }),
    ],
    ["what is no export", () => ({ bytes: new TextEncoder().encode("<html>\n") })],
    ["what is not UTF-8", () => ({ bytes: new Uint8Array([0x22, 0xff, 0x22, 0x0a]) })],
    ["records that are none", () => ({ bytes: bytesOf([{ record: { uuid: "x" }, cursor: "1" }]) })],
    ["lines that are none", () => ({ bytes: new TextEncoder().encode("null\n") })],
  ])("after %s, and from where it was", async (_, fault) => {
    const broken = (from: string): Streamed => ({
      bytes: bytesOf(linesFrom(from).slice(0, 4)),
      streamEnd: "breaks",
    });
    const retried: number[] = [];
    const hooks = { onRetry: ({ attempt }: { attempt: number }) => void retried.push(attempt) };
    const { client, cursors } = serve(
      (from, call) => (call === 1 ? broken(from) : call < 4 ? fault(from) : whole(from)),
      { retries: 3, hooks },
    );
    expect(await read(open(client))).toEqual(RECORDS);
    expect(cursors).toEqual(["", "1", "1", "1"]);
    expect(retried).toEqual([1, 2, 3]);
  });

  it("after lines of an unknown kind", async () => {
    const { client, cursors } = serve((from) => ({
      bytes: bytesOf([{ comment: "from the future" }, ...linesFrom(from)]),
    }));
    expect(await read(open(client))).toEqual(RECORDS);
    expect(cursors).toHaveLength(1);
  });

  it("in a second loop, where the first one stopped", async () => {
    const { client, cursors } = serve(whole);
    const all = open(client);
    const first: unknown[] = [];
    for await (const record of all) {
      first.push(record);
      if (first.length === 3) break;
    }
    expect([...first, ...(await read(all))]).toEqual(RECORDS);
    expect(cursors).toEqual(["", "1"]);
  });
});

describe("ends with an error", () => {
  it.each([0, 2])("after %i retries without progress", async (retries) => {
    const { client, cursors } = serve(
      (from, call) =>
        call === 1 ? { bytes: bytesOf(linesFrom(from).slice(0, 4)), streamEnd: "breaks" } : unavailable,
      {
        retries,
      },
    );
    const { records, error } = await failure(open(client));
    expect(records).toEqual(RECORDS.slice(0, 3));
    expect(error).toBeInstanceOf(UnavailableError);
    expect(error).toMatchObject({ code: "UNAVAILABLE", retryable: true });
    expect(cursors).toHaveLength(retries + 1);
  });

  it("at once for a refusal that retries cannot change", async () => {
    const { client, cursors } = serve(() => problem(403, "PERMISSION_DENIED"));
    expect((await failure(open(client))).error).toMatchObject({
      code: "PERMISSION_DENIED",
      status: 403,
      requestId: "request-1",
    });
    expect(cursors).toHaveLength(1);
  });

  it("for a refusal in the middle, after the records before it", async () => {
    const refused = problem(401, "UNAUTHENTICATED", { reason: "KEY_REVOKED" }).json;
    const { client, cursors } = serve((from) => ({
      bytes: bytesOf([...linesFrom(from).slice(0, 3), { error: refused }]),
    }));
    const { records, error } = await failure(open(client));
    expect(records).toEqual(RECORDS.slice(0, 2));
    expect(error).toMatchObject({ name: "UnauthenticatedError", reason: "KEY_REVOKED", status: 401 });
    expect(cursors).toHaveLength(1);
  });

  it("as a timeout, when a part of the coordinator did not answer in time", async () => {
    const late = problem(504, "DEADLINE_EXCEEDED", { retryable: true }).json;
    const { client } = serve(
      (from) => ({ bytes: bytesOf([...linesFrom(from).slice(0, 3), { error: late }]) }),
      { retries: 0 },
    );
    expect((await failure(open(client))).error).toMatchObject({ name: "TimeoutError", status: 504 });
  });

  it("instead of continuing from the same cursor forever", async () => {
    const { client, cursors } = serve(
      (from) => ({ bytes: bytesOf([{ as_of: TIME }, { end: "continue", cursor: from }]) }),
      { retries: 2 },
    );
    expect((await failure(open(client))).error.message).toContain("makes no progress");
    expect(cursors).toHaveLength(3);
  });

  it("when fetch returns no stream", async () => {
    const { client } = serve(() => ({ status: 200, text: '{"end":"complete"}\n' }), { retries: 0 });
    expect((await failure(open(client))).error.message).toContain("`body`");
  });

  it("without a cell", () => {
    const { client } = serve(whole, { cell: undefined });
    expect(() => open(client)).toThrow("this call is about one cell");
  });
});

describe("a silence", () => {
  it("of the coordinator ends the attempt", async () => {
    const { client, cancelled } = serve(
      (from) => ({ bytes: bytesOf(linesFrom(from).slice(0, 2)), streamEnd: "hangs" }),
      { attemptMs: 500, retries: 0 },
    );
    const { records, error } = await failure(open(client));
    expect(records).toHaveLength(1);
    expect(error).toMatchObject({
      name: "TimeoutError",
      message: "exportRecords: Error: no answer within 500 ms",
    });
    expect(cancelled()).toBe(1);
  });

  it("includes bytes that do not complete a line", async () => {
    const endless = new ReadableStream<Uint8Array>({
      pull: async (controller) => {
        await later(5);
        controller.enqueue(new Uint8Array([0x20]));
      },
    });
    const fetch: Fetch = async () => ({
      status: 200,
      headers: new Headers(),
      body: endless,
      text: async () => "",
    });
    const client = createClient({
      url: "http://leasehold.test",
      key: "secret",
      cell: "7",
      fetch,
      attemptMs: 30,
      retries: 0,
    });
    expect((await failure(open(client))).error.name).toBe("TimeoutError");
  });

  it("of the reader does not count, and the whole export has no deadline", async () => {
    const { client, cursors } = serve(whole, { attemptMs: 500, deadlineMs: 500, retries: 0 });
    const records: unknown[] = [];
    for await (const record of open(client)) {
      if (records.length === 0) await later(600);
      records.push(record);
    }
    expect(records).toEqual(RECORDS);
    expect(cursors).toHaveLength(1);
  });
});

describe("is cancelled", () => {
  it("by leaving the loop, which ends the request and calls the hooks", async () => {
    const kinds: string[] = [];
    const hooks = {
      onResponse: ({ kind, status }: { kind: string; status?: number }) =>
        void kinds.push(`${kind} ${status}`),
    };
    const { client, cancelled, cursors } = serve(
      (from) => ({ bytes: bytesOf(linesFrom(from).slice(0, 3)), streamEnd: "hangs" }),
      { hooks },
    );
    for await (const record of open(client)) if (record.uuid === "uuid-1") break;
    expect(cancelled()).toBe(1);
    expect(cursors).toHaveLength(1);
    expect(kinds).toEqual(["unknown 200"]);
  });

  it("by an error that the loop throws", async () => {
    const { client, cancelled } = serve((from) => ({
      bytes: bytesOf(linesFrom(from).slice(0, 3)),
      streamEnd: "hangs",
    }));
    const why = new Error("the disk is full");
    await expect(
      (async () => {
        for await (const _ of open(client)) throw why;
      })(),
    ).rejects.toBe(why);
    expect(cancelled()).toBe(1);
  });

  it.each(["client", "call"] as const)(
    "by the signal of the %s, while it waits for a line",
    async (owner) => {
      const controller = new AbortController();
      const { signal } = controller;
      const own = owner === "client" ? { signal } : {};
      const { client, cancelled, cursors } = serve(
        (from) => ({ bytes: bytesOf(linesFrom(from).slice(0, 3)), streamEnd: "hangs" }),
        own,
      );
      const why = new Error("the user left");
      setTimeout(() => controller.abort(why), 20);
      const { records, error } = await failure(open(client, owner === "call" ? { signal } : {}));
      expect(records).toHaveLength(2);
      expect(error).toBeInstanceOf(CancelledError);
      expect(error.cause).toBe(why);
      expect(cancelled()).toBe(1);
      expect(cursors).toHaveLength(1);
    },
  );

  it("by a signal during a record: records that have arrived already are not yielded", async () => {
    const controller = new AbortController();
    const { client } = serve(whole);
    let given = 0;
    const reading = (async () => {
      for await (const _ of open(client, { signal: controller.signal })) {
        given += 1;
        controller.abort();
      }
    })();
    await expect(reading).rejects.toBeInstanceOf(CancelledError);
    expect(given).toBe(1);
  });

  it("by a signal before it starts: nothing is sent", async () => {
    const { client, cursors } = serve(whole);
    expect((await failure(open(client, { signal: AbortSignal.abort() }))).error).toMatchObject({
      code: "CANCELLED",
      outcomeKnown: true,
    });
    expect(cursors).toEqual([]);
  });

  it("by a signal between two attempts", async () => {
    const controller = new AbortController();
    const hooks = { onRetry: () => controller.abort() };
    const { client, cursors } = serve(() => unavailable, { hooks });
    expect((await failure(open(client, { signal: controller.signal }))).error).toBeInstanceOf(CancelledError);
    expect(cursors).toHaveLength(1);
  });
});
