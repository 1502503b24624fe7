/** What the server of native gRPC does with calls that no good client makes, and with its own end. */
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { Client as NativeClient, credentials, status, type ServiceError } from "@grpc/grpc-js";
import { once } from "node:events";
import { connect as connectHttp2, type ClientHttp2Session, type IncomingHttpHeaders } from "node:http2";
import { connect as connectTcp } from "node:net";
import { connect as connectTls } from "node:tls";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { freePort } from "../../../src/hosts/workerd/free-port.ts";
import {
  HealthCheckRequestSchema,
  HealthCheckResponse_ServingStatus as Serving,
  HealthCheckResponseSchema,
  HealthListResponseSchema,
} from "../../../src/coordinator/wire/generated/grpc/health/v1/health_pb.js";
import {
  ServerReflectionRequestSchema,
  ServerReflectionResponseSchema,
  type ServerReflectionRequest,
  type ServerReflectionResponse,
} from "../../../src/coordinator/wire/generated/grpc/reflection/v1/reflection_pb.js";
import { httpSend, requestSend, type WebResponse } from "../../../src/hosts/grpc/send.ts";
import {
  BeginUpdateRequestSchema,
  BeginUpdateResponseSchema,
} from "../../../src/coordinator/wire/protobuf.ts";
import { freshName } from "../../suites/conformance/leases.ts";
import { begin, record } from "../../suites/wire/messages.ts";
import { at, decode, encode, type Fields } from "../../coordinator/wire/bytes.ts";
import { Authority } from "./certificates.ts";
import { callBytes, type Sent } from "./native-transport.ts";
import { places, serveGrpc, type GrpcDeployment } from "./served.ts";

const BEGIN = "/gitlab.cells.topology_service.claims.v1.ClaimService/BeginUpdate";
const MIB = 1024 * 1024;

const beginOf = (name = freshName()): Uint8Array =>
  toBinary(BeginUpdateRequestSchema, create(BeginUpdateRequestSchema, begin([record(name)])));

const failure = async (call: Promise<unknown>): Promise<ServiceError> =>
  call.then(
    () => expect.fail("the call succeeded"),
    (error: ServiceError) => error,
  );

const asIs = (bytes: Buffer): Buffer => bytes;

describe.each(places)("%s", (place) => {
  let deployment: GrpcDeployment;
  let client: NativeClient;
  beforeAll(async () => {
    deployment = await serveGrpc(place);
    client = deployment.connect();
  });
  afterAll(() => deployment.close());

  const authorization = (cell = "1"): Record<string, string> => ({
    authorization: `Bearer ${deployment.served.keys.cell(cell)}`,
  });
  const call = (path: string, message: Uint8Array, sent: Sent = {}): Promise<Buffer> =>
    callBytes(client, path, message, { metadata: authorization(), ...sent });
  /** HTTP/2 without a client of gRPC. */
  const session = (): ClientHttp2Session => {
    const { cert, key } = deployment.authority.issue("raw", { sans: ["DNS:cell-1.test"] });
    const opened = connectHttp2(`https://localhost:${deployment.grpc.port}`, {
      ca: deployment.authority.cert,
      cert,
      key,
    });
    onTestFinished(() => opened.destroy());
    return opened;
  };

  test("a message of more than 10 MiB is refused before the coordinator sees it", async () => {
    const error = await failure(call(BEGIN, Buffer.alloc(10 * MIB + 1)));
    expect(error.code).toBe(status.RESOURCE_EXHAUSTED);
    // Below it, the limit of the coordinator applies.
    expect((await failure(call(BEGIN, Buffer.alloc(9 * MIB)))).details).toContain("body_bytes");
  });

  test("a compressed message is bounded by what it contains", async () => {
    const message = gzipSync(Buffer.alloc(64 * MIB));
    const stream = session().request({
      ":method": "POST",
      ":path": BEGIN,
      "content-type": "application/grpc",
      "grpc-encoding": "gzip",
      te: "trailers",
      ...authorization(),
    });
    const header = Buffer.alloc(5);
    header.writeUInt8(1, 0);
    header.writeUInt32BE(message.length, 1);
    stream.end(Buffer.concat([header, message]));
    const [headers] = (await once(stream, "response")) as [Record<string, string>];
    expect(headers["grpc-status"]).toBe(String(status.RESOURCE_EXHAUSTED));
  });

  test("a gzipped message is read", async () => {
    const options = { "grpc.default_compression_algorithm": 2 };
    const compressing = deployment.connect(undefined, options);
    const metadata = authorization();
    const name = "a".repeat(150) + freshName();
    const answer = await callBytes(compressing, BEGIN, beginOf(name), { metadata });
    expect(fromBinary(BeginUpdateResponseSchema, answer).leaseUuid?.value).toMatch(/^[\da-f-]{36}$/);
  });

  test("[W13] a message that cannot be read is refused by the field, whoever serves the method", async () => {
    const refusalOf = async (path: string, fields: Fields) => {
      const { code, details } = await failure(call(path, encode(fields)));
      return [code, details];
    };
    const topology = "/gitlab.cells.topology_service";
    for (const [path, fields, details] of [
      [
        BEGIN,
        [[1, [[5, [[6, "12"]]]]]],
        "`create_records[0].claim.project_id` is sent as bytes, and must be a whole number.",
      ],
      [
        `${topology}.ClassifyService/ClassifyPages`,
        [[1, 5]],
        "`claims[0]` is sent as a number, and must be a Claim.",
      ],
      ["/grpc.health.v1.Health/Check", [[1, 5]], "`service` is sent as a number, and must be text"],
      ["/grpc.health.v1.Health/Watch", [[1, 5]], "`service` is sent as a number, and must be text"],
      [
        "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
        [[3, 5]],
        "`file_by_filename` is sent as a number, and must be text",
      ],
    ] as const)
      expect(await refusalOf(path, fields), path).toEqual([status.INVALID_ARGUMENT, details]);
  });

  test("[W4] a deadline of more than 8 digits is refused, and the longest ones are kept", async () => {
    const raw = session();
    const ask = async (timeout: string, path = BEGIN): Promise<[string?, string?]> => {
      const type = { "content-type": "application/grpc", te: "trailers", "grpc-timeout": timeout };
      const stream = raw.request({ ":method": "POST", ":path": path, ...type, ...authorization() });
      stream.resume();
      stream.end(Buffer.from([0, 0, 0, 0, 0]));
      let ended: IncomingHttpHeaders = {};
      for (const event of ["response", "trailers"])
        stream.on(event, (sent: IncomingHttpHeaders) => (ended = sent));
      await once(stream, "close");
      return [String(ended["grpc-status"]), decodeURIComponent(String(ended["grpc-message"] ?? ""))];
    };
    const told = "`grpc-timeout` must be 1 to 8 digits and a unit: H, M, S, m, u or n";
    for (const timeout of ["123456789S", "1000000001m", "1", "S", "x1S", "1Sx", "1 S", "-1S"])
      for (const path of [BEGIN, "/grpc.health.v1.Health/Check"])
        expect(await ask(timeout, path), timeout).toEqual([String(status.INVALID_ARGUMENT), told]);
    // The message is empty, so it is for no cell.
    for (const timeout of ["99999999H", "99999999M", "99999999S", "99999999m", "00000060S"]) {
      expect((await ask(timeout))[0], timeout).toBe(String(status.PERMISSION_DENIED));
      expect(await ask(timeout, "/grpc.health.v1.Health/Check"), timeout).toEqual(["0", "OK"]);
    }
  });

  test("a truncated message, an unknown method and another media type are refused", async () => {
    expect((await failure(call(BEGIN, beginOf().subarray(0, -3)))).code).toBe(status.INVALID_ARGUMENT);
    expect((await failure(call(`${BEGIN}2`, beginOf()))).code).toBe(status.UNIMPLEMENTED);
    const stream = session().request({ ":method": "POST", ":path": BEGIN, "content-type": "text/html" });
    stream.end();
    const [headers] = (await once(stream, "response")) as [Record<string, unknown>];
    expect(headers[":status"]).toBe(415);
  });

  test("who has no key is UNAUTHENTICATED, and another cell's key is PERMISSION_DENIED", async () => {
    const nobody = await failure(call(BEGIN, beginOf(), { metadata: {} }));
    expect(nobody.code).toBe(status.UNAUTHENTICATED);
    const other = await failure(call(BEGIN, beginOf(), { metadata: authorization("2") }));
    expect(other.code).toBe(status.PERMISSION_DENIED);
  });

  test("a client without a certificate, or with that of another authority, has no connection", async () => {
    const other = new Authority("another authority");
    onTestFinished(() => other.close());
    const stranger = other.issue("cell 1", { sans: ["DNS:cell-1.test"] });
    for (const given of [
      credentials.createSsl(deployment.authority.cert),
      credentials.createSsl(deployment.authority.cert, stranger.key, stranger.cert),
    ]) {
      const refused = new NativeClient(`localhost:${deployment.grpc.port}`, given);
      const error = await failure(callBytes(refused, BEGIN, beginOf(), { metadata: authorization() }));
      refused.close();
      expect(error.code).toBe(status.UNAVAILABLE);
    }
  });

  test("a header that names a client certificate is not passed on", async () => {
    const metadata = { "client-cert": ":AAAA:", "x-forwarded-for": "1.2.3.4" };
    expect((await failure(call(BEGIN, beginOf(), { metadata }))).code).toBe(status.UNAUTHENTICATED);
  });

  test("300 calls at once on one connection are all answered", async () => {
    const answers = await Promise.all(
      Array.from({ length: 300 }, () => failure(call(BEGIN, beginOf(), { metadata: {} }))),
    );
    expect(new Set(answers.map(({ code }) => code))).toEqual(new Set([status.UNAUTHENTICATED]));
  });

  test("1,000 streams that are cancelled leave the server as it was", async () => {
    const opened = session();
    await once(opened, "connect");
    const ended = Array.from({ length: 1_000 }, async () => {
      const stream = opened.request({
        ":method": "POST",
        ":path": BEGIN,
        "content-type": "application/grpc",
      });
      stream.on("error", () => {});
      stream.write(Buffer.from([0, 0, 0, 1]));
      stream.close(8);
      await once(stream, "close");
    });
    await Promise.all(ended);
    expect(await call(BEGIN, beginOf())).toBeInstanceOf(Buffer);
  });

  test("the id of the request, and details, are in the metadata of an error", async () => {
    const { metadata } = await failure(call(BEGIN, beginOf(), { metadata: {} }));
    expect(metadata.get("x-request-id")).toEqual([expect.stringMatching(/^[\da-f-]{36}$/)]);
    expect(metadata.get("grpc-status-details-bin")[0]).toBeInstanceOf(Buffer);
  });

  test("reflection lists the services and describes them with all that they import", async () => {
    const ask = async (messageRequest: ServerReflectionRequest["messageRequest"]) =>
      (await reflected(client, messageRequest)).messageResponse;
    const listed = await ask({ case: "listServices", value: "" });
    const names = listed.case === "listServicesResponse" ? listed.value.service.map(({ name }) => name) : [];
    expect(names).toEqual([
      "gitlab.cells.topology_service.claims.v1.ClaimService",
      "gitlab.cells.topology_service.ClassifyService",
      "gitlab.cells.topology_service.CellService",
      "gitlab.cells.topology_service.HealthService",
      "grpc.health.v1.Health",
      "grpc.reflection.v1.ServerReflection",
    ]);
    for (const name of names)
      expect(await ask({ case: "fileContainingSymbol", value: name })).toMatchObject({
        case: "fileDescriptorResponse",
      });
    const nothing = { case: "errorResponse", value: { errorCode: status.NOT_FOUND } };
    expect(await ask({ case: "fileByFilename", value: "../../etc/passwd" })).toMatchObject(nothing);
    expect(await ask({ case: undefined })).toMatchObject({
      case: "errorResponse",
      value: { errorCode: status.INVALID_ARGUMENT },
    });
  });

  test("[W2] a client of the oldest generation gets its own form", async () => {
    const name = freshName();
    const source = [
      [1, 3],
      [2, 4_711],
    ] as const;
    const metadata = [
      [
        1,
        [
          [1, 1],
          [2, name],
        ],
      ],
      [
        2,
        [
          [1, 2],
          [2, 7],
        ],
      ],
      [3, source],
    ] as const;
    const begun = await call(
      BEGIN,
      encode([
        [1, metadata],
        [3, 1],
      ]),
    );
    const uuid = at(begun, 2, 1) as Uint8Array;
    const lease = encode([
      [1, 1],
      [2, [[1, uuid]]],
    ]);
    await call(BEGIN.replace("Begin", "Commit"), lease);
    const list = encode([
      [1, 1],
      [2, 3],
      [4, 100],
    ]);
    const page = await call(BEGIN.replace("BeginUpdate", "ListRecords"), list);
    const sources = decode(page).flatMap(([no, found]) =>
      no === 1 ? [at(found as Uint8Array, 2, 3, 2)] : [],
    );
    expect(sources).toContain(4_711n);
  });

  test("health: each service serves, and an unknown one is NOT_FOUND", async () => {
    const check = (service: string): Promise<Buffer> =>
      call(
        "/grpc.health.v1.Health/Check",
        toBinary(HealthCheckRequestSchema, create(HealthCheckRequestSchema, { service })),
        { metadata: {} },
      );
    for (const service of ["", "gitlab.cells.topology_service.claims.v1.ClaimService"])
      expect(fromBinary(HealthCheckResponseSchema, await check(service)).status).toBe(Serving.SERVING);
    expect((await failure(check("no.such.Service"))).code).toBe(status.NOT_FOUND);
    const list = await call("/grpc.health.v1.Health/List", new Uint8Array(), { metadata: {} });
    expect(Object.keys(fromBinary(HealthListResponseSchema, list).statuses)).toHaveLength(7);
  });
});

/** Holds back the answers of the coordinator. */
class Holding {
  readonly #waiting: (() => void)[] = [];
  readonly signals: AbortSignal[] = [];
  released = false;

  readonly send = requestSend("http://localhost", async (request) => {
    this.signals.push(request.signal);
    if (!this.released)
      await new Promise<void>((resolve, reject) => {
        this.#waiting.push(resolve);
        request.signal.addEventListener("abort", () => reject(new Error("aborted")));
      });
    return this.answer(request);
  });

  answer: (request: Request) => Promise<Response> = async () => new Response();

  async untilAsked(times = 1): Promise<void> {
    await expect.poll(() => this.signals.length).toBeGreaterThanOrEqual(times);
  }

  release(): void {
    this.released = true;
    for (const go of this.#waiting.splice(0)) go();
  }
}

test("a cancelled call ends the request to the coordinator", async () => {
  const holding = new Holding();
  const deployment = await serveGrpc("standalone", { send: holding.send });
  onTestFinished(() => deployment.close());
  const cancel = new AbortController();
  const called = callBytes(deployment.connect(), BEGIN, beginOf(), { signal: cancel.signal });
  await holding.untilAsked();
  cancel.abort();
  expect((await failure(called)).code).toBe(status.CANCELLED);
  await expect.poll(() => holding.signals[0]?.aborted).toBe(true);
});

test("[W4] a deadline reaches the coordinator, and ends the call", async () => {
  const sent: (string | undefined)[] = [];
  const deployment = await serveGrpc("standalone", {
    send: async ({ headers, signal }) => {
      sent.push(headers["grpc-timeout"]);
      return new Promise((_, reject) => {
        signal?.addEventListener("abort", () => reject(new Error("aborted")));
      });
    },
  });
  onTestFinished(() => deployment.close());
  // On a busy machine, a call may end before it is sent.
  let deadlineMs = 150;
  while (sent.length === 0) {
    deadlineMs *= 2;
    const error = await failure(callBytes(deployment.connect(), BEGIN, beginOf(), { deadlineMs }));
    expect(error.code).toBe(status.DEADLINE_EXCEEDED);
  }
  expect(Number.parseInt(sent[0] ?? "", 10)).toBeLessThanOrEqual(deadlineMs);
  expect(sent[0]).toMatch(/^\d+m$/);
});

test("a stop answers the calls that run, ends watches, and accepts no more", async () => {
  const holding = new Holding();
  const deployment = await serveGrpc("standalone", { send: holding.send });
  holding.answer = (request) => deployment.served.host.dispatch(request);
  const client = deployment.connect();
  const message = toBinary(HealthCheckRequestSchema, create(HealthCheckRequestSchema, {}));
  const watch = client.makeServerStreamRequest(
    "/grpc.health.v1.Health/Watch",
    asIs,
    asIs,
    Buffer.from(message),
  );
  const seen: Serving[] = [];
  watch.on("data", (bytes: Buffer) => seen.push(fromBinary(HealthCheckResponseSchema, bytes).status));
  const watched = once(watch, "end");
  const metadata = { authorization: `Bearer ${deployment.served.keys.cell("1")}` };
  const called = callBytes(client, BEGIN, beginOf(), { metadata });
  // Another has been accepted, and has never become a connection of HTTP/2.
  const silent = connectTcp(deployment.grpc.port, "127.0.0.1");
  await once(silent, "connect");
  await holding.untilAsked(2);
  const stopped = deployment.grpc.close(60_000);
  await watched;
  expect(seen.at(-1)).toBe(Serving.NOT_SERVING);
  holding.release();
  expect(fromBinary(BeginUpdateResponseSchema, await called).leaseUuid?.value).toMatch(/^[\da-f-]{36}$/);
  await stopped;
  expect((await failure(callBytes(client, BEGIN, beginOf()))).code).toBe(status.UNAVAILABLE);
  silent.destroy();
  await deployment.close();
});

test("a call that never ends does not hold up a stop for longer than it may take", async () => {
  const holding = new Holding();
  const deployment = await serveGrpc("standalone", { send: holding.send });
  const called = failure(callBytes(deployment.connect(), BEGIN, beginOf()));
  await holding.untilAsked();
  await deployment.grpc.close(100);
  expect([status.UNAVAILABLE, status.CANCELLED]).toContain((await called).code);
  await deployment.close();
});

test("a coordinator that is down is UNAVAILABLE, and says whether something may have happened", async () => {
  const down = await serveGrpc("bridge", { send: httpSend(`http://127.0.0.1:${await freePort()}`) });
  onTestFinished(() => down.close());
  const refused = await failure(callBytes(down.connect(), BEGIN, beginOf()));
  expect([refused.code, refused.details]).toEqual([
    status.UNAVAILABLE,
    "the coordinator cannot be reached; nothing was done",
  ]);
  const health = await callBytes(down.connect(), "/grpc.health.v1.Health/Check", new Uint8Array());
  expect(fromBinary(HealthCheckResponseSchema, health).status).toBe(Serving.NOT_SERVING);

  const cut = await serveGrpc("standalone", { send: () => Promise.reject(new TypeError("terminated")) });
  onTestFinished(() => cut.close());
  expect((await failure(callBytes(cut.connect(), BEGIN, beginOf()))).details).toContain("is unknown");
});

test.each([
  [503, "text/html", status.UNAVAILABLE],
  [401, "text/html", status.UNAUTHENTICATED],
  [302, "text/html", status.UNKNOWN],
  [200, "text/html", status.UNKNOWN],
  [200, "application/grpc-web+proto", status.UNAVAILABLE],
])("an answer %i of %s, which is not that of a coordinator, is status %i", async (http, type, code) => {
  const body = Buffer.from("\0\0\0\0\x09abc");
  const send = async (): Promise<WebResponse> => ({ status: http, headers: { "content-type": type }, body });
  const deployment = await serveGrpc("standalone", { send });
  onTestFinished(() => deployment.close());
  expect((await failure(callBytes(deployment.connect(), BEGIN, beginOf()))).code).toBe(code);
});

test("more connections than the limit are closed", async () => {
  const deployment = await serveGrpc("standalone", { connections: 1 });
  onTestFinished(() => deployment.close());
  const client = deployment.connect();
  await failure(callBytes(client, BEGIN, beginOf()));
  const second = connectTls(deployment.grpc.port, "127.0.0.1", { rejectUnauthorized: false });
  second.on("error", () => {});
  await new Promise<void>((resolve) => second.once("close", () => resolve()));
  expect((await failure(callBytes(client, BEGIN, beginOf()))).code).toBe(status.UNAUTHENTICATED);
});

async function reflected(
  client: NativeClient,
  messageRequest: ServerReflectionRequest["messageRequest"],
): Promise<ServerReflectionResponse> {
  const path = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
  const stream = client.makeBidiStreamRequest(path, asIs, asIs);
  const request = create(ServerReflectionRequestSchema, { messageRequest });
  stream.end(Buffer.from(toBinary(ServerReflectionRequestSchema, request)));
  const [answer] = (await once(stream, "data")) as [Buffer];
  stream.resume();
  return fromBinary(ServerReflectionResponseSchema, answer);
}
