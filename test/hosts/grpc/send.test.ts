/** How the bridge reaches a coordinator that is not as it should be. */
import { createServer, type RequestListener, type Server } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { createServer as createTcpServer, type AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import {
  httpSend,
  type SendLimits,
  MAX_ANSWER_BYTES,
  NotConnected,
  type WebRequest,
} from "../../../src/hosts/grpc/send.ts";
import { Authority } from "./certificates.ts";

async function listen(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

const serve = async (answer: RequestListener): Promise<{ server: Server; url: string }> => {
  const server = createServer(answer);
  return { server, url: `http://127.0.0.1:${await listen(server)}` };
};

const post = (more: Partial<WebRequest> = {}): WebRequest => ({
  method: "POST",
  path: "/grpc/x",
  headers: { "content-length": "4" },
  body: Buffer.from("body"),
  ...more,
});

test("calls one after the other share a connection", async () => {
  let connections = 0;
  const { server, url } = await serve((request, answer) => {
    request.resume().on("end", () => answer.setHeader("x-request-id", "7").end(request.url));
  });
  server.on("connection", () => (connections += 1));
  const send = httpSend(url);
  for (let calls = 0; calls < 5; calls += 1)
    expect(await send(post())).toMatchObject({
      status: 200,
      headers: { "x-request-id": "7" },
      body: Buffer.from("/grpc/x"),
    });
  expect(connections).toBe(1);
});

test("a certificate that is not trusted is no connection", async () => {
  const authority = new Authority();
  onTestFinished(() => authority.close());
  const server = createTlsServer(authority.issue("server", { sans: ["IP:127.0.0.1"] }), () =>
    expect.fail("the request was sent"),
  );
  const sent = httpSend(`https://127.0.0.1:${await listen(server)}`)(post());
  await expect(sent).rejects.toBeInstanceOf(NotConnected);
});

test("a connection that takes too long is given up, and nothing was sent", async () => {
  // It accepts the connection, but never answers the handshake of TLS.
  const server = createTcpServer((socket) => void socket.resume().on("error", () => {}));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  const closed = new Promise((resolve) => server.on("connection", (socket) => socket.on("close", resolve)));
  const sent = httpSend(`https://127.0.0.1:${port}`, { connectMs: 50 })(post());
  await expect(sent).rejects.toBeInstanceOf(NotConnected);
  await closed;
});

/** Sends with limits that double as long as a slow machine can't connect within them. */
async function sendWithin(url: string, limitsOf: (limitMs: number) => SendLimits): Promise<unknown> {
  for (let limitMs = 50; ; limitMs *= 2) {
    const outcome = await httpSend(url, limitsOf(limitMs))(post()).catch((error: unknown) => error);
    if (!(outcome instanceof NotConnected)) return outcome;
  }
}

test.each([
  ["before its answer", undefined],
  ["in the middle of its answer", "a part"],
])("a coordinator that falls silent %s is given up, and may have done something", async (_, part) => {
  let onClose: () => void;
  const closed = new Promise<void>((resolve) => (onClose = resolve));
  const { url } = await serve((_request, answer) => {
    answer.on("close", () => onClose());
    if (part !== undefined) answer.writeHead(200, { "content-length": "100" }).write(part);
  });
  expect(await sendWithin(url, (silentMs) => ({ silentMs }))).toBeInstanceOf(Error);
  await closed;
});

test("once there is a connection, the limit for connecting ends nothing", async () => {
  let delayMs = 0;
  const { url } = await serve((_, answer) => void setTimeout(() => answer.end("done"), delayMs));
  const outcome = await sendWithin(url, (connectMs) => {
    delayMs = 2 * connectMs;
    return { connectMs };
  });
  expect(outcome).toMatchObject({ status: 200, body: Buffer.from("done") });
});

test("an answer that is cut is an error, because the call may have had an effect", async () => {
  const { url } = await serve((_, answer) => {
    answer.writeHead(200, { "content-length": "100" }).write("a part", () => answer.destroy());
  });
  const error: unknown = await httpSend(url)(post()).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(Error);
  expect(error).not.toBeInstanceOf(NotConnected);
});

test("an answer that is too large is not read to its end", async () => {
  let isCut = false;
  const { url } = await serve((_, answer) => {
    answer.on("close", () => (isCut = !answer.writableFinished));
    answer.write(Buffer.alloc(MAX_ANSWER_BYTES));
    answer.write("and more");
  });
  expect((await httpSend(url)(post())).body).toBeUndefined();
  await expect.poll(() => isCut).toBe(true);
});

test("a call that nobody waits for is ended, also before it is sent", async () => {
  let ended = 0;
  const cancel = new AbortController();
  const { url } = await serve((_, answer) => {
    answer.on("close", () => (ended += 1));
    cancel.abort();
  });
  await expect(httpSend(url)(post({ signal: cancel.signal }))).rejects.toThrow();
  await expect.poll(() => ended).toBe(1);
  await expect(httpSend(url)(post({ signal: cancel.signal }))).rejects.toThrow();
  expect(ended).toBe(1);
});
