/** What calls of native gRPC may take up before anybody knows who makes them. */
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { Client as NativeClient, credentials, status, type ServiceError } from "@grpc/grpc-js";
import { once } from "node:events";
import {
  connect as connectHttp2,
  type ClientHttp2Session,
  type ClientHttp2Stream,
  type IncomingHttpHeaders,
} from "node:http2";
import zlib, { gzipSync } from "node:zlib";
import { expect, onTestFinished, test, vi } from "vitest";
import { GrpcServer, type GrpcOptions } from "../../../src/hosts/grpc/grpc-server.ts";
import type { Send, WebRequest } from "../../../src/hosts/grpc/send.ts";
import {
  ServerReflectionRequestSchema,
  ServerReflectionResponseSchema,
} from "../../../src/coordinator/wire/generated/grpc/reflection/v1/reflection_pb.js";
import { callBytes } from "./native-transport.ts";

const BEGIN = "/gitlab.cells.topology_service.claims.v1.ClaimService/BeginUpdate";
const WATCH = "/grpc.health.v1.Health/Watch";
const CHECK = "/grpc.health.v1.Health/Check";
const REFLECT = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
const KEY = { authorization: "Bearer lhk_of_nobody" };
const KIB = 1024;

interface Serving {
  port: number;
  /** The calls that reached the coordinator. */
  asked: WebRequest[];
  session: ClientHttp2Session;
  client: NativeClient;
}

/** A server without TLS. Its coordinator answers every call with a message of zeros. */
async function serve(
  limits: GrpcOptions["limits"],
  answered?: Promise<void>,
  answerBytes = 0,
): Promise<Serving> {
  const asked: WebRequest[] = [];
  const send: Send = async (request) => {
    if (request.method === "GET") return { status: 200, headers: {}, body: undefined };
    asked.push(request);
    await answered;
    const headers = { "content-type": "application/grpc-web+proto", "grpc-status": "0" };
    return { status: 200, headers, body: frame(Buffer.alloc(answerBytes)) };
  };
  const grpc = await GrpcServer.listen({ host: "127.0.0.1", port: 0, connections: 100, send, limits });
  const session = connectHttp2(`http://127.0.0.1:${grpc.port}`);
  const client = new NativeClient(`127.0.0.1:${grpc.port}`, credentials.createInsecure());
  onTestFinished(async () => {
    session.destroy();
    client.close();
    await grpc.close(0);
  });
  return { port: grpc.port, asked, session, client };
}

/** A call of HTTP/2 whose end is up to the test. */
class RawCall {
  readonly stream: ClientHttp2Stream;
  /** Undefined: the server has not ended the call. */
  code: number | undefined;
  details: string | undefined;
  isClosed = false;

  constructor(session: ClientHttp2Session, path = BEGIN, headers: Readonly<Record<string, string>> = KEY) {
    const type = { "content-type": "application/grpc", te: "trailers" };
    this.stream = session.request({ ":method": "POST", ":path": path, ...type, ...headers });
    this.stream.on("response", (answer) => this.#read(answer));
    this.stream.on("trailers", (trailers: IncomingHttpHeaders) => this.#read(trailers));
    this.stream.on("error", () => {});
    this.stream.resume();
    this.stream.on("close", () => (this.isClosed = true));
  }

  #read(headers: IncomingHttpHeaders): void {
    if (headers["grpc-status"] === undefined) return;
    this.code = Number(headers["grpc-status"]);
    this.details = decodeURIComponent(String(headers["grpc-message"]));
  }

  /** Waits until the server has closed the stream, which the client itself never does. */
  async closed(): Promise<void> {
    if (!this.isClosed) await once(this.stream, "close");
  }
}

function frame(message: Uint8Array, { declared = message.length, flag = 0 } = {}): Buffer {
  const header = Buffer.alloc(5);
  header.writeUInt8(flag, 0);
  header.writeUInt32BE(declared, 1);
  return Buffer.concat([header, message]);
}

const begun = (bytes: number): Buffer => frame(Buffer.alloc(bytes), { declared: 9 * KIB * KIB });

const answer = (client: NativeClient, bytes = 10): Promise<Buffer> =>
  callBytes(client, BEGIN, Buffer.alloc(bytes), { metadata: KEY });

const failure = (call: Promise<unknown>): Promise<ServiceError> =>
  call.then(
    () => expect.fail("the call succeeded"),
    (error: ServiceError) => error,
  );

test.each([{}, { authorization: "" }, { authorization: "Bearer" }, { authorization: "Basic YTpi" }])(
  "[W8] a call with the headers %j is refused before its message has arrived",
  async (headers) => {
    const { session, asked } = await serve({});
    const call = new RawCall(session, BEGIN, headers);
    call.stream.write(begun(32 * KIB));
    await call.closed();
    expect([call.code, asked]).toEqual([status.UNAUTHENTICATED, []]);
    expect(call.details).toContain("the key is missing");
  },
);

test("a call without a key that is complete gets the same status, and health needs no key", async () => {
  const { client, asked } = await serve({});
  const error = await failure(callBytes(client, BEGIN, Buffer.alloc(100 * KIB)));
  expect([error.code, asked]).toEqual([status.UNAUTHENTICATED, []]);
  await callBytes(client, CHECK, new Uint8Array());
});

test("[W8] incomplete messages share a number of bytes, and the first calls are ended", async () => {
  const { session, client, asked } = await serve({ bytes: 1024 * KIB });
  const calls = Array.from({ length: 40 }, () => new RawCall(session));
  for (const call of calls) call.stream.write(begun(100 * KIB));
  await Promise.all(calls.slice(0, 30).map((call) => call.closed()));
  const ended = calls.filter(({ code }) => code !== undefined);
  expect(new Set(ended.map(({ code }) => code))).toEqual(new Set([status.RESOURCE_EXHAUSTED]));
  expect(calls.at(-1)?.isClosed).toBe(false);
  expect(asked).toEqual([]);
  await answer(client);
  expect(asked).toHaveLength(1);
});

test("[W8] a message in frames of one byte counts for what it takes up", async () => {
  const { session } = await serve({ bytes: 64 * KIB });
  const call = new RawCall(session);
  call.stream.write(begun(0));
  let written = 0;
  while (!call.isClosed && written < 2_000) {
    written += 1;
    await new Promise((resolve) => call.stream.write(Buffer.alloc(1), resolve));
  }
  await call.closed();
  expect(call.code).toBe(status.RESOURCE_EXHAUSTED);
});

test("[W8] more incomplete calls than the limit end those that began first", async () => {
  const { session, client } = await serve({ calls: 10 });
  const calls = Array.from({ length: 15 }, () => new RawCall(session));
  await Promise.all(calls.slice(0, 5).map((call) => call.closed()));
  expect(calls.map(({ code }) => code)).toEqual(
    calls.map((_, no) => (no < 5 ? status.RESOURCE_EXHAUSTED : undefined)),
  );
  await answer(client);
});

test("[W8] incomplete calls of health and reflection don't take the place of other calls", async () => {
  const { session, client } = await serve({ keylessCalls: 10, keylessBytes: 64 * KIB });
  const waiting = new RawCall(session);
  const calls = Array.from({ length: 15 }, (_, no) => new RawCall(session, no % 2 ? CHECK : REFLECT, {}));
  await Promise.all(calls.slice(0, 5).map((call) => call.closed()));
  const part = frame(Buffer.alloc(9 * KIB), { declared: 10 * KIB });
  for (const call of calls.slice(5)) call.stream.write(part);
  await Promise.all(calls.slice(5, 9).map((call) => call.closed()));
  expect(waiting.isClosed).toBe(false);
  await answer(client);
  await callBytes(client, CHECK, new Uint8Array());
});

test("[W8] headers count", async () => {
  const { session, client } = await serve({ bytes: 16 * KIB });
  const long = { ...KEY, "x-long": "x".repeat(10 * KIB) };
  const calls = [new RawCall(session, BEGIN, long), new RawCall(session, BEGIN, long)];
  await calls[0]?.closed();
  expect(calls.map(({ code }) => code)).toEqual([status.RESOURCE_EXHAUSTED, undefined]);
  await answer(client);
});

test("[W8] requests of health and reflection are short, also if they are compressed", async () => {
  const { session } = await serve({});
  // The first field many times, which is a valid message.
  const long = Buffer.alloc(21 * KIB, Buffer.from([0x0a, 1, 97]));
  for (const [path, flag, message] of [
    [CHECK, 0, long],
    [REFLECT, 0, long],
    [CHECK, 1, gzipSync(long)],
    [REFLECT, 1, gzipSync(long)],
  ] as const) {
    const call = new RawCall(session, path, { "grpc-encoding": "gzip" });
    call.stream.write(frame(message, { flag }));
    await call.closed();
    expect(call.code).toBe(flag === 0 ? status.RESOURCE_EXHAUSTED : status.INTERNAL);
  }
});

test("[W8] a message that does not arrive in time ends its call, but an answer may take longer", async () => {
  let release = (): void => {};
  const answered = new Promise<void>((resolve) => (release = resolve));
  const { session, client, asked } = await serve({ readMs: 100 }, answered);
  const slow = answer(client);
  await expect.poll(() => asked.length).toBe(1);
  const calls = Array.from({ length: 3 }, () => new RawCall(session));
  calls[1]?.stream.write(begun(32 * KIB));
  // It is complete, but its client doesn't say so.
  calls[2]?.stream.write(frame(Buffer.alloc(10)));
  await Promise.all(calls.map((call) => call.closed()));
  expect(new Set(calls.map(({ code }) => code))).toEqual(new Set([status.RESOURCE_EXHAUSTED]));
  expect(calls[0]?.details).toContain("100 ms");
  release();
  await slow;
  expect(asked).toHaveLength(1);
});

test("[W8] the messages of calls that run count until their answer", async () => {
  let release = (): void => {};
  const answered = new Promise<void>((resolve) => (release = resolve));
  const { client, asked } = await serve({ bytes: 1024 * KIB }, answered);
  const running = Array.from({ length: 3 }, () => answer(client, 300 * KIB));
  await expect.poll(() => asked.length).toBe(3);
  expect((await failure(answer(client, 300 * KIB))).code).toBe(status.RESOURCE_EXHAUSTED);
  release();
  await Promise.all(running);
  await answer(client, 300 * KIB);
  expect(asked).toHaveLength(4);
});

/** A connection on which the server may send nothing of a message until `read` is called. */
function unread(port: number): { session: ClientHttp2Session; read: () => void } {
  const session = connectHttp2(`http://127.0.0.1:${port}`, { settings: { initialWindowSize: 0 } });
  onTestFinished(() => session.destroy());
  return { session, read: () => session.settings({ initialWindowSize: KIB * KIB }) };
}

test.each([
  ["bytes", { bytes: 750 * KIB }, 300 * KIB],
  ["calls", { calls: 2 }, 10],
])(
  "[W8] answers that are not read share a number of %s, and the first are ended",
  async (_, limits, bytes) => {
    const { port, client } = await serve(limits, undefined, bytes);
    const { session, read } = unread(port);
    const calls: RawCall[] = [];
    for (let count = 0; count < 3; count += 1) {
      const call = new RawCall(session);
      call.stream.end(frame(Buffer.alloc(10)));
      await once(call.stream, "response");
      calls.push(call);
    }
    await calls[0]?.closed();
    expect(calls.map(({ isClosed }) => isClosed)).toEqual([true, false, false]);
    expect(calls[0]?.stream.rstCode).toBe(8);
    read();
    await Promise.all(calls.map((call) => call.closed()));
    expect(calls.map(({ code }) => code)).toEqual([undefined, 0, 0]);
    expect(await answer(client)).toHaveLength(bytes);
  },
);

test("[W8] answers that were read don't count", async () => {
  const { client } = await serve({ bytes: 750 * KIB, calls: 2 }, undefined, 300 * KIB);
  for (let count = 0; count < 10; count += 1) expect(await answer(client)).toHaveLength(300 * KIB);
});

test("the watches of one client keep no other client from watching", async () => {
  const { port, client } = await serve({ keylessCalls: 1_000 });
  const watches: RawCall[] = [];
  const watch = async (count: number): Promise<void> => {
    const session = connectHttp2(`http://127.0.0.1:${port}`);
    onTestFinished(() => session.destroy());
    const calls = Array.from({ length: count }, () => new RawCall(session, WATCH, {}));
    for (const { stream } of calls) stream.end(frame(new Uint8Array()));
    await Promise.all(calls.map(({ stream }) => once(stream, "data")));
    watches.push(...calls);
  };
  for (const count of [250, 250, 200, 250, 49, 1]) await watch(count);
  const asIs = (bytes: Buffer): Buffer => bytes;
  const other = client.makeServerStreamRequest(WATCH, asIs, asIs, Buffer.alloc(0));
  await once(other, "data");
  await expect.poll(() => watches.filter(({ isClosed }) => isClosed).length).toBe(1);
  expect(watches.findIndex(({ code }) => code === status.RESOURCE_EXHAUSTED)).toBe(0);
  other.on("error", () => {});
  other.cancel();
});

test("[W8] compressed messages count for what they may become", async () => {
  const { session, asked } = await serve({ inflatingBytes: 1024 * KIB });
  const gzip = { ...KEY, "grpc-encoding": "gzip" };
  const inflate = vi.spyOn(zlib, "createGunzip");
  onTestFinished(() => inflate.mockRestore());
  const large = new RawCall(session, BEGIN, gzip);
  large.stream.write(frame(gzipSync(Buffer.alloc(5 * KIB * KIB)), { flag: 1 }));
  await large.closed();
  expect([large.code, asked]).toEqual([status.RESOURCE_EXHAUSTED, []]);
  const second = new RawCall(session, BEGIN, gzip);
  second.stream.write(Buffer.concat([frame(Buffer.alloc(0)), frame(gzipSync("x"), { flag: 1 })]));
  await second.closed();
  expect([second.code, inflate.mock.calls]).toEqual([status.UNIMPLEMENTED, []]);
  for (let count = 0; count < 50; count += 1) {
    const small = new RawCall(session, BEGIN, gzip);
    small.stream.end(frame(gzipSync(Buffer.alloc(100)), { flag: 1 }));
    await small.closed();
    expect(small.code).toBe(0);
  }
  expect(inflate).toHaveBeenCalledTimes(50);
  expect(asked.at(-1)?.body).toHaveLength(105);
});

test.each([
  ["has a second message", Buffer.concat([frame(Buffer.alloc(10)), frame(Buffer.alloc(10))]), 12],
  ["announces more than 10 MiB", frame(Buffer.alloc(10), { declared: 11 * KIB * KIB }), 8],
  ["can't be decompressed", frame(Buffer.alloc(10), { flag: 1 }), 13],
])("[W8] a call that %s is closed, although its client has not ended it", async (_, bytes, code) => {
  const { session, asked } = await serve({});
  const call = new RawCall(session, BEGIN, { ...KEY, "grpc-encoding": "gzip" });
  call.stream.write(bytes);
  await call.closed();
  expect([call.code, asked]).toEqual([code, []]);
});

test.each([
  ["with a deadline that has passed", BEGIN, { ...KEY, "grpc-timeout": "1m" }],
  ["of an unknown method", `${BEGIN}2`, KEY],
  ["of another media type", BEGIN, { ...KEY, "content-type": "text/html" }],
])("a call %s is closed, although its client has not ended it", async (_, path, headers) => {
  const { session, asked } = await serve({});
  const call = new RawCall(session, path, headers);
  call.stream.write(begun(32 * KIB));
  await call.closed();
  expect(asked).toEqual([]);
});

test("[W8] a stream of reflection that has been answered can be ended for others", async () => {
  const { session, client } = await serve({ keylessCalls: 2 });
  const stream = new RawCall(session, REFLECT, {});
  stream.stream.write(frame(new Uint8Array()));
  await once(stream.stream, "data");
  const others = [new RawCall(session, CHECK, {}), new RawCall(session, CHECK, {})];
  await stream.closed();
  expect(stream.stream.rstCode).toBe(8);
  expect(others.map(({ isClosed }) => isClosed)).toEqual([false, false]);
  await callBytes(client, CHECK, new Uint8Array());
});

test("a stream of reflection may wait between its requests, and asks as often as it likes", async () => {
  const { session, client } = await serve({ readMs: 50, keylessBytes: 16 * KIB });
  const asIs = (bytes: Buffer): Buffer => bytes;
  const stream = client.makeBidiStreamRequest(REFLECT, asIs, asIs);
  const messageRequest = { case: "fileByFilename", value: "x".repeat(KIB) } as const;
  const request = toBinary(
    ServerReflectionRequestSchema,
    create(ServerReflectionRequestSchema, { messageRequest }),
  );
  for (let count = 0; count < 40; count += 1) {
    stream.write(Buffer.from(request));
    const [bytes] = (await once(stream, "data")) as [Buffer];
    expect(fromBinary(ServerReflectionResponseSchema, bytes).messageResponse.case).toBe("errorResponse");
  }
  // The time of another call passes.
  await new RawCall(session).closed();
  stream.end(Buffer.from(request));
  await once(stream, "data");
});
