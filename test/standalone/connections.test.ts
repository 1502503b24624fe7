/** What callers may do with connections, headers and bodies, and that they don't harm others. */
import { connect, type Socket } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import { configOf } from "../../src/env.ts";
import { connectionLimit } from "../../src/standalone/connection-limit.ts";
import { HttpServer, type HttpOptions } from "../../src/standalone/http-server.ts";
import { serveFiles } from "./served.ts";

const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0)) await end();
});

async function listen(limits: HttpOptions["limits"] = {}): Promise<HttpServer> {
  const server = await HttpServer.listen(async () => new Response("served"), {
    host: "127.0.0.1",
    port: 0,
    bodyReadMs: 1_000,
    limits,
  });
  ends.push(() => server.close(0));
  return server;
}

/** A connection, with everything that it has received. */
class Connection {
  received = "";
  readonly closed: Promise<string>;
  readonly #socket: Socket;

  constructor(url: string) {
    this.#socket = connect({ port: Number(new URL(url).port), host: "127.0.0.1", allowHalfOpen: true });
    this.#socket.on("data", (data) => (this.received += data.toString())).on("error", () => {});
    this.#socket.once("end", () => this.#socket.end());
    this.closed = new Promise((resolve) => this.#socket.once("close", () => resolve(this.received)));
    ends.push(() => this.#socket.destroy());
  }

  send(text: string): this {
    this.#socket.write(text);
    return this;
  }

  /** Sends the last text, and receives further on. */
  finish(text: string): this {
    this.#socket.end(text);
    return this;
  }

  /** Sends a whole request, and waits for its answer. */
  async request(): Promise<void> {
    this.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
    await expect.poll(() => this.received).toContain("served");
  }

  reset(): void {
    this.#socket.resetAndDestroy();
  }

  end(): void {
    this.#socket.destroy();
  }
}

test("headers that don't arrive in time are answered with 408", async () => {
  const { url } = await listen({ headersMs: 100, checkMs: 20 });
  const connection = new Connection(url).send("GET / HTTP/1.1\r\nhost: a\r\n");
  expect(await connection.closed).toMatch(/^HTTP\/1\.1 408 /);
});

test("a connection that sends nothing is closed, and so is an idle one", async () => {
  const { url } = await listen({ headersMs: 100, keepAliveMs: 100, checkMs: 20 });
  const [silent, idle] = [new Connection(url), new Connection(url)];
  await idle.request();
  expect(await silent.closed).not.toContain("served");
  expect(await idle.closed).toContain("served");
});

test("headers that are too large are answered with 431, and the largest ones are served", async () => {
  const { url } = await listen({ headerBytes: 2_000 });
  const request = (bytes: number): string =>
    `GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\nlong: ${"x".repeat(bytes)}\r\n\r\n`;
  expect(await new Connection(url).send(request(2_000)).closed).toMatch(/^HTTP\/1\.1 431 /);
  expect(await new Connection(url).send(request(1_500)).closed).toMatch(/^HTTP\/1\.1 200 [^]*served/);
});

test("more connections than the limit are closed at once and counted, and others don't notice", async () => {
  const server = await listen({ connections: 2 });
  const [first, second] = [new Connection(server.url), new Connection(server.url)];
  await first.request();
  await second.request();
  expect(await new Connection(server.url).closed).toBe("");
  await first.request();
  second.end();
  await second.closed;
  // The server notices the end a moment later.
  await expect
    .poll(async () => {
      const next = new Connection(server.url).send("GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
      return next.closed;
    })
    .toContain("served");
  expect(server.takeDropped()).toBeGreaterThanOrEqual(1);
  expect(server.takeDropped()).toBe(0);
  server.limitConnections(1);
  expect(await new Connection(server.url).closed).toBe("");
});

test("a caller that ends its side of the connection gets its answer", async () => {
  const server = await HttpServer.listen(
    async () => {
      // The end arrives before the answer.
      await new Promise((resume) => setTimeout(resume, 50));
      return new Response("served");
    },
    { host: "127.0.0.1", port: 0, bodyReadMs: 1_000 },
  );
  const connection = new Connection(server.url).finish("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
  expect(await connection.closed).toMatch(/^HTTP\/1\.1 200 [^]*served/);
  await server.close(0);
});

test("a stop answers what is running, and says that the connection ends", async () => {
  const answers: (() => void)[] = [];
  const server = await HttpServer.listen(
    () => new Promise((resolve) => answers.push(() => resolve(new Response("served")))),
    { host: "127.0.0.1", port: 0, bodyReadMs: 1_000 },
  );
  const connection = new Connection(server.url).send("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
  await expect.poll(() => answers.length).toBe(1);
  const stopped = server.close(60_000);
  answers[0]?.();
  expect(await connection.closed).toMatch(/^HTTP\/1\.1 200 [^]*connection: close[^]*served/i);
  await stopped;
});

describe("a body", () => {
  const head = (key: string, bytes: number): string =>
    "PUT /v1/cells/1/leases/00000000-0000-4000-8000-000000000001 HTTP/1.1\r\nhost: a\r\n" +
    `authorization: Bearer ${key}\r\ncontent-type: application/json\r\ncontent-length: ${bytes}\r\n\r\n`;

  test("that does not arrive in time is answered by the application", async () => {
    const served = await serveFiles(["1"], { LEASEHOLD_BODY_READ_MS: "100" });
    ends.push(() => served.close());
    const connection = new Connection(served.url).send(`${head(served.keys.cell("1"), 50)}{"creates"`);
    await expect.poll(() => connection.received).toMatch(/ 408 [^]*body_read_ms/);
  });

  test("that is too large is answered before all of it has arrived", async () => {
    const served = await serveFiles(["1"], {});
    ends.push(() => served.close());
    const { bodyBytes } = configOf(served.host.env).limits;
    const connection = new Connection(served.url).send(head(served.keys.cell("1"), 1e12));
    connection.send("x".repeat(bodyBytes + 1));
    await expect.poll(() => connection.received).toMatch(/ 413 [^]*body_bytes/);
  });

  test("that is cut off harms no other request", async () => {
    const served = await serveFiles(["1"], {});
    ends.push(() => served.close());
    const other = new Connection(served.url);
    for (let n = 0; n < 50; n += 1) {
      const connection = new Connection(served.url).send(`${head(served.keys.cell("1"), 50)}{"creates"`);
      if (n % 2 === 0) connection.end();
      else connection.reset();
      await connection.closed;
    }
    other.send("GET /healthz HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
    expect(await other.closed).toMatch(/^HTTP\/1\.1 200 /);
    expect(served.failures).toEqual([]);
  });
});

test("connections leave file descriptors for the databases", () => {
  expect(connectionLimit(7, Infinity)).toBe(4_096);
  expect(connectionLimit(7, 16_384)).toBe(4_096);
  expect(connectionLimit(2_000, 16_384)).toBe(2_064);
  expect(connectionLimit(7, 1_024)).toBe(719);
  expect(connectionLimit(1_000, 1_024)).toBe(1);
});
