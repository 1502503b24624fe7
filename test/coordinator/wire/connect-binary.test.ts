/** Binary calls of Connect get the same answers from our code as from Connect-ES. */
import { create, toBinary, type MessageInitShape } from "@bufbuild/protobuf";
import { createExecutionContext } from "cloudflare:test";
import { afterEach, beforeAll, expect, test, vi } from "vitest";
import { handlers } from "../../../src/coordinator/api/handlers.ts";
import { beginTrace, type Trace } from "../../../src/coordinator/api/trace.ts";
import { sendRequest } from "../../../src/coordinator/api/web-request.ts";
import { connectBinary } from "../../../src/coordinator/wire/connect-binary.ts";
import { BeginUpdateRequestSchema } from "../../../src/coordinator/wire/protobuf.ts";
import { serveWire } from "../../../src/coordinator/wire/serve-wire.ts";
import type { KeyName } from "../../suites/conformance/client.ts";
import { freshName } from "../../suites/conformance/leases.ts";
import { begin, own, record } from "../../suites/wire/messages.ts";
import { Api, keyOf, startDeployment } from "../../support/workerd/api.ts";
import { encode, type Fields } from "./bytes.ts";
import { BASE, beginBytes, clientOf, SERVICE } from "./clients.ts";

let api: Api;
let small: Api;

beforeAll(async () => {
  api = await startDeployment("1", "2");
  small = new Api({ LEASEHOLD_BODY_BYTES: String(SMALL_BYTES) });
});

afterEach(() => void vi.restoreAllMocks());

const SMALL_BYTES = 2_048;
const TOPOLOGY = "gitlab.cells.topology_service";

interface Sent {
  path?: string;
  method?: string;
  type?: string;
  key?: KeyName | "";
  headers?: Record<string, string>;
  body?: Uint8Array;
  using?: Api;
  signal?: AbortSignal;
}

const requestOf = async ({ path = "BeginUpdate", method = "POST", type, key, ...sent }: Sent) =>
  new Request(`${BASE}/${path.includes("/") ? path : `${SERVICE}/${path}`}`, {
    method,
    headers: {
      "content-type": type ?? "application/proto",
      ...(key === "" ? {} : { authorization: `Bearer ${await keyOf(key ?? "cell 1")}` }),
      ...sent.headers,
    },
    ...(sent.body === undefined ? {} : { body: sent.body as Uint8Array<ArrayBuffer> }),
    ...(sent.signal === undefined ? {} : { signal: sent.signal }),
  });

/** The answer, and what the log and the audit have of it. The id of the request is always the same. */
async function answerTo(sent: Sent) {
  const trace: Trace = { ...beginTrace(), requestId: "00000000-0000-4000-8000-000000000001" };
  const { env } = sent.using ?? api;
  const execution = createExecutionContext();
  const waitUntil = (work: Promise<unknown>): void => execution.waitUntil(work);
  const answer = await sendRequest(await requestOf(sent), undefined, (incoming) =>
    serveWire({ incoming, env, trace, waitUntil }),
  );
  const body = new Uint8Array(await answer.arrayBuffer());
  const { route, code, reason } = trace;
  return { status: answer.status, headers: [...answer.headers], body, route, code, reason };
}

interface Compared {
  answer: Awaited<ReturnType<typeof answerTo>>;
  /** Whether the answer did not come from Connect-ES. */
  isOurs: boolean;
}

/** Sends a request twice, to our code and to Connect-ES alone, and compares what they answer. */
async function compare(sent: Sent, title: string): Promise<Compared> {
  const ours = vi.spyOn(connectBinary, "answer");
  const answer = await answerTo(sent);
  const isOurs = (await ours.mock.results[0]?.value) !== undefined;
  ours.mockRestore();
  expect(answer, title).toEqual(await withConnectEs(() => answerTo(sent)));
  return { answer, isOurs };
}

async function withConnectEs<T>(call: () => Promise<T>): Promise<T> {
  const decided = vi.spyOn(connectBinary, "isFor").mockReturnValue(false);
  try {
    return await call();
  } finally {
    decided.mockRestore();
  }
}

/** The same begin may be sent twice: its id makes it one lease. */
const repeatable = (): Record<string, string> => ({ "idempotency-key": crypto.randomUUID() });

const beginOf = (request: MessageInitShape<typeof BeginUpdateRequestSchema>): Uint8Array =>
  toBinary(BeginUpdateRequestSchema, create(BeginUpdateRequestSchema, request));

const gzipped = async (bytes: Uint8Array): Promise<Uint8Array> => {
  const { readable, writable } = new CompressionStream("gzip");
  const read = new Response(readable).arrayBuffer();
  const writer = writable.getWriter();
  await writer.write(bytes);
  await writer.close();
  return new Uint8Array(await read);
};

/** A begin of exactly this many bytes, because of a field that nobody knows. */
function beginOfBytes(length: number): Uint8Array {
  const begun = beginBytes();
  const padded = (size: number) => Uint8Array.from([...begun, ...encode([[999, new Uint8Array(size)]])]);
  const long = padded(length - begun.length - 5);
  return padded(length - begun.length - 5 + length - long.length);
}

const NAMES = 30;

async function owned(): Promise<string[]> {
  return own(
    api,
    clientOf(api),
    Array.from({ length: NAMES }, (_, index) => 100 + index),
  );
}

test("methods answer the same", async () => {
  const names = await owned();
  const calls: [path: string, body: Fields, key?: KeyName][] = [
    [`${SERVICE}/GetRecord`, [[2, [[1, names[0] ?? ""]]]]],
    [`${SERVICE}/GetRecord`, [[2, [[1, "nobody-has-this"]]]]],
    [`${SERVICE}/GetRecord`, []],
    [`${SERVICE}/ListLeases`, [[1, 1]]],
    [
      `${SERVICE}/ListLeases`,
      [
        [1, 1],
        [3, 0],
      ],
    ],
    [
      // The oldest generation.
      `${SERVICE}/ListRecords`,
      [
        [1, 1],
        [2, 3],
        [4, 100],
      ],
    ],
    [
      `${SERVICE}/ListRecords`,
      [
        [1, 1],
        [2, 3],
        [4, new Uint8Array(8)],
        [5, new Uint8Array(8).fill(127)],
        [6, Uint8Array.from([1])],
      ],
    ],
    [`${SERVICE}/GetCells`, [], "router"],
    [`${SERVICE}/CommitUpdate`, [[1, 1]]],
    [
      `${SERVICE}/CommitUpdate`,
      [
        [1, 1],
        [2, [[1, crypto.randomUUID()]]],
      ],
    ],
    [
      `${SERVICE}/RollbackUpdate`,
      [
        [1, 1],
        [2, [[1, crypto.randomUUID()]]],
      ],
    ],
    [`${TOPOLOGY}.CellService/GetCell`, [[1, 1]], "router"],
    [`${TOPOLOGY}.CellService/GetCell`, [[1, 99]], "router"],
    [`${TOPOLOGY}.ClassifyService/GetCells`, [], "router"],
    [`${TOPOLOGY}.ClassifyService/Classify`, [[1, 1]], "router"],
    [`${TOPOLOGY}.ClassifyService/ClassifyPages`, [[1, [[17, "free.example"]]]], "router"],
    [`${TOPOLOGY}.HealthService/LivenessProbe`, [], "router"],
  ];
  for (const [path, fields, key = "cell 1"] of calls)
    expect((await compare({ path, body: encode(fields), key }, path)).isOurs, path).toBe(true);
});

test("begins and their conflicts answer the same, and long answers are not compressed", async () => {
  const headers = { ...repeatable(), "accept-encoding": "gzip, br" };
  const body = beginOf(begin(Array.from({ length: NAMES }, () => record(freshName()))));
  const begun = await compare({ headers, body }, "begin");
  expect([begun.answer.status, begun.isOurs]).toEqual([200, true]);
  const again = await compare({ headers: { ...headers, ...repeatable() }, body }, "conflict");
  expect([again.answer.status, again.isOurs]).toEqual([409, true]);
  expect(again.answer.body.length).toBeGreaterThan(1_024);
  const reused = await compare({ headers, body: beginOf(begin([record(freshName())])) }, "another batch");
  expect([reused.answer.status, reused.isOurs]).toEqual([400, true]);
});

test("faults of a request get the same errors", async () => {
  const nameless = { subject: { type: 2, id: 7n } };
  const bodies = [
    begin([]),
    begin([nameless]),
    begin([record("")]),
    begin([record("a//b")]),
    begin([record(freshName()), record("\u202E")]),
    begin([record("same"), record("same")]),
    begin([], [record("same"), nameless]),
    begin([{ ...record(freshName()), subject: { type: 77, id: 7n } }]),
    begin([record(freshName())], [], 2n),
    begin([record(freshName())], [], 0n),
    begin([record(freshName())], [], -1n),
  ];
  for (const [index, body] of bodies.entries()) {
    const { answer, isOurs } = await compare({ headers: repeatable(), body: beginOf(body) }, `${index}`);
    expect([answer.status >= 400, isOurs], `${index}`).toEqual([true, true]);
  }
  for (const [key, status] of [
    ["", 401],
    ["lhk_1", 401],
    ["cell 2", 403],
    ["router", 403],
  ] as const)
    expect((await compare({ key, body: beginBytes() }, key)).answer.status, key).toBe(status);
  const headers = { "idempotency-key": "not a UUID" };
  expect((await compare({ headers, body: beginBytes() }, "key")).answer.status).toBe(400);
});

test("[W5] bodies that are no messages get the same errors", async () => {
  const whole = beginBytes();
  const bodies = [
    undefined,
    new Uint8Array(),
    Uint8Array.from([255, 255, 255]),
    Uint8Array.from([...whole, 8]),
    Uint8Array.from([...whole, 0]),
    // Text that is not UTF-8, and a group that does not end.
    encode([[1, [[5, [[1, Uint8Array.from([255])]]]]]]),
    Uint8Array.from([...whole, 0x1b]),
    ...Array.from(whole, (_, length) => whole.slice(0, length)),
  ];
  for (const [index, body] of bodies.entries()) {
    const { answer } = await compare(body === undefined ? {} : { body }, `${index}`);
    // The start of a message may be a message, but not one with a cell.
    expect([400, 403], `${index}`).toContain(answer.status);
  }
});

test("messages with a changed byte are read or refused in the same way", async () => {
  const whole = beginBytes("changed");
  const statuses = new Set<number>();
  for (const [index, byte] of whole.entries())
    for (const changed of [byte ^ 1, byte ^ 128, 0, 255]) {
      const body = Uint8Array.from(whole);
      body[index] = changed;
      const { answer } = await compare({ headers: repeatable(), body }, `${index}: ${changed}`);
      statuses.add(answer.status);
    }
  expect(statuses).toEqual(new Set([200, 400, 403, 409]));
});

test("[W1] messages at the limit and above it get the same answers", async () => {
  for (const [length, status] of [
    [SMALL_BYTES, 200],
    [SMALL_BYTES + 1, 429],
  ] as const) {
    const body = beginOfBytes(length);
    expect(body.length).toBe(length);
    const plain = await compare({ using: small, headers: repeatable(), body }, `${length}`);
    expect(plain.answer.status).toBe(status);
    const headers = { ...repeatable(), "content-encoding": "gzip" };
    const packed = await compare({ using: small, headers, body: await gzipped(body) }, `${length}, gzip`);
    // The first begin of these bytes has their name.
    expect(packed.answer.status).toBe(status === 200 ? 409 : status);
  }
});

test("headers of the protocol have the same effects", async () => {
  const timeouts = ["5000", "600000", "0", "600001", "9999999999", "10000000000"];
  const cases: [headers: Record<string, string>, type?: string][] = [
    ...["1", "2", ""].map((version): [Record<string, string>] => [{ "connect-protocol-version": version }]),
    ...[...timeouts, "-1", "1.5", "", " 20000 ", "soon", "5000, 5000"].map(
      (timeout): [Record<string, string>] => [{ "connect-timeout-ms": timeout }],
    ),
    ...["identity", "gzip", "br", "", "GZIP", "gzip, gzip"].flatMap(
      (encoding): [Record<string, string>][] => [
        [{ "content-encoding": encoding }],
        [{ "accept-encoding": encoding }],
        [{ "connect-accept-encoding": encoding, "connect-content-encoding": encoding }],
      ],
    ),
    [{ "trailer-a": "b", te: "trailers", "x-any-bin": "AAA" }],
    [{ "leasehold-reason": "a reason" }],
    ...[
      "Application/Proto",
      "application/proto; charset=utf-8",
      "application/proto;",
      " application/proto ",
      "application/protobuf",
      "application/x-protobuf",
      "application/connect+proto",
      "application/json",
      "application/grpc-web+proto",
      "text/plain",
      "",
    ].map((type): [Record<string, string>, string] => [{}, type]),
  ];
  // A lease that is committed twice is committed, so every case has the same message.
  const { leaseUuid } = await clientOf(api).beginUpdate(begin([record(freshName())]));
  const lease = {
    body: encode([
      [1, 1],
      [2, [[1, leaseUuid?.value ?? ""]]],
    ]),
    path: "CommitUpdate",
  };
  let ours = 0;
  for (const [headers, type = "application/proto"] of cases) {
    const compared = await compare({ ...lease, headers, type }, JSON.stringify({ headers, type }));
    if (compared.isOurs) ours += 1;
  }
  expect(ours).toBeGreaterThan(20);
  for (const method of ["GET", "PUT", "DELETE", "OPTIONS"]) await compare({ method }, method);
  for (const path of ["NoSuchMethod", "no.Service/Method", `${SERVICE}/`, `${SERVICE}/BeginUpdate/more`])
    expect((await compare({ path, body: beginBytes() }, path)).answer.status).toBe(404);
});

test("[W4] calls whose deadline passes, or whose caller goes away, get the same answers", async () => {
  const pending = () => vi.spyOn(handlers, "beginLease").mockReturnValue(new Promise(() => {}));
  pending();
  const body = beginBytes();
  const headers = { ...repeatable(), "connect-timeout-ms": "20" };
  const late = await compare({ headers, body }, "deadline");
  expect([late.answer.status, late.isOurs]).toEqual([504, true]);
  for (const wait of [0, 20]) {
    const gone = async (): Promise<Compared["answer"]> => {
      const controller = new AbortController();
      setTimeout(() => controller.abort(), wait);
      const { signal } = controller;
      return answerTo({ headers: { ...headers, "connect-timeout-ms": "60000" }, body, signal });
    };
    const answer = await gone();
    expect(answer, `${wait}`).toEqual(await withConnectEs(gone));
    expect(answer.status).toBe(504);
  }
});

test("a fault of a method gets the same answer", async () => {
  vi.spyOn(console, "log").mockImplementation(() => {});
  vi.spyOn(handlers, "beginLeaseWithNewId").mockRejectedValue(new TypeError("it broke"));
  const { answer, isOurs } = await compare({ body: beginBytes() }, "fault");
  expect([answer.status, isOurs]).toEqual([500, true]);
  // An answer that can't be written is a fault of the protocol.
  vi.spyOn(handlers, "beginLeaseWithNewId").mockResolvedValue({
    ok: true,
    value: { status: 201, body: { lease: { cell_id: String(1n << 70n), uuid: "" } } },
  } as never);
  expect((await compare({ body: beginBytes() }, "answer")).answer.status).toBe(500);
});
