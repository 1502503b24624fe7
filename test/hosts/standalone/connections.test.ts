/** What callers may do with connections, headers and bodies, and that they don't harm others. */
import { spawnSync } from "node:child_process";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text as textOf } from "node:stream/consumers";
import { connect as connectTls, type TLSSocket } from "node:tls";
import { afterEach, describe, expect, onTestFinished, test } from "vitest";
import { configOf } from "../../../src/coordinator/env.ts";
import { wallClock } from "../../../src/coordinator/runtime.ts";
import { bodyOf, encodedOnce } from "../../../src/coordinator/api/encoded-once.ts";
import type { HttpAnswer, Incoming } from "../../../src/coordinator/api/incoming.ts";
import type { Failure } from "../../../src/coordinator/api/problem.ts";
import { connectionLimit } from "../../../src/hosts/standalone/connections.ts";
import { HttpServer, type HttpOptions } from "../../../src/hosts/standalone/http-server.ts";
import { serveFiles, type Served } from "./served.ts";

const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0)) await end();
});

const answerOf = (body: HttpAnswer["body"]): HttpAnswer => ({ status: 200, headers: {}, body });

async function listen(
  limits: HttpOptions["limits"] = {},
  serve: (incoming: Incoming) => Promise<HttpAnswer> = async () => answerOf("served"),
  tls?: HttpOptions["tls"],
): Promise<HttpServer> {
  const refuse = ({ status = 400, detail }: Failure): HttpAnswer => ({ ...answerOf(detail), status });
  const server = await HttpServer.listen(
    { serve, refuse },
    { host: "127.0.0.1", port: 0, bodyReadMs: 1_000, limits, ...(tls === undefined ? {} : { tls }) },
  );
  ends.push(() => server.close(0));
  return server;
}

/** More than the system takes of an answer whose caller doesn't read it. */
const LARGE = new Uint8Array(32 * 1024 * 1024);

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

  /** Reads nothing more until `read`. */
  unread(): this {
    this.#socket.pause();
    return this;
  }

  read(): this {
    this.#socket.resume();
    return this;
  }

  /** Resolves when a part of the answer has arrived. */
  async begun(): Promise<this> {
    await expect.poll(() => this.#socket.bytesRead + this.#socket.readableLength).toBeGreaterThan(0);
    return this;
  }

  /** What the system has not taken of what was sent. */
  get unsentBytes(): number {
    return this.#socket.writableLength;
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
  const [quick, patient] = [
    await listen({ headersMs: 100, checkMs: 20 }),
    await listen({ keepAliveMs: 100, checkMs: 20 }),
  ];
  const [silent, idle] = [new Connection(quick.url), new Connection(patient.url)];
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
});

/** The end of the caller's side arrives before this answer. */
async function slowly(): Promise<HttpAnswer> {
  await new Promise((resume) => setTimeout(resume, 50));
  return answerOf("served");
}

test("a caller that ends its side of the connection gets its answer", async () => {
  const server = await listen({}, slowly);
  const connection = new Connection(server.url).finish("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
  expect(await connection.closed).toMatch(/^HTTP\/1\.1 200 [^]*served/);
  await server.close(0);
});

/** A certificate of this machine, and its key. */
function certified(): { cert: Buffer; key: Buffer } {
  const folder = mkdtempSync(join(tmpdir(), "leasehold-tls-"));
  ends.push(() => rmSync(folder, { recursive: true }));
  const [cert, key] = [join(folder, "cert.pem"), join(folder, "key.pem")];
  const options = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=localhost";
  const made = spawnSync("openssl", [...options.split(" "), "-keyout", key, "-out", cert]);
  expect(made.status, String(made.stderr)).toBe(0);
  return { cert: readFileSync(cert), key: readFileSync(key) };
}

test("so does one with TLS", async () => {
  const tls = certified();
  const server = await listen({}, slowly, tls);
  const halfOpen = { ca: tls.cert, checkServerIdentity: () => undefined, allowHalfOpen: true };
  const caller = connectTls(Number(new URL(server.url).port), "127.0.0.1", halfOpen);
  caller.end("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
  expect(await textOf(caller)).toMatch(/^HTTP\/1\.1 200 [^]*served/);
});

test("a stop answers what is running, and says that the connection ends", async () => {
  const answers: (() => void)[] = [];
  const server = await listen(
    {},
    () => new Promise((resolve) => answers.push(() => resolve(answerOf("served")))),
  );
  const connection = new Connection(server.url).send("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
  await expect.poll(() => answers.length).toBe(1);
  const stopped = server.close(60_000);
  answers[0]?.();
  expect(await connection.closed).toMatch(/^HTTP\/1\.1 200 [^]*connection: close[^]*served/i);
  await stopped;
});

test("a stop waits until an answer is taken that was made before", async () => {
  const server = await listen({}, async () => answerOf(LARGE));
  const connection = new Connection(server.url).unread().send("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
  await connection.begun();
  const closed = server.close(60_000);
  expect((await connection.read().closed).length).toBeGreaterThan(LARGE.length);
  await closed;
});

test("a stop answers all requests that a connection has sent, and carries out no other", async () => {
  const answers: (() => void)[] = [];
  const server = await listen(
    {},
    () => new Promise((resolve) => answers.push(() => resolve(answerOf("served")))),
  );
  const request = "GET / HTTP/1.1\r\nhost: a\r\n\r\n";
  const connection = new Connection(server.url).send(request + request);
  await expect.poll(() => answers.length).toBe(1);
  const stopped = server.close(60_000);
  connection.send(request);
  await new Promise((resume) => setTimeout(resume, 50));
  answers[0]?.();
  await expect.poll(() => answers.length).toBe(2);
  answers[1]?.();
  const received = await connection.closed;
  expect(received.match(/served/g)).toHaveLength(2);
  expect(received).toMatch(/served[^]*connection: close[^]*served/i);
  expect(answers).toHaveLength(2);
  await stopped;
});

describe("a connection", () => {
  const requests = (count: number): string => "GET / HTTP/1.1\r\nhost: a\r\n\r\n".repeat(count);

  test("has one request at a time, in the order in which they were sent", async () => {
    const answers: (() => void)[] = [];
    const { url } = await listen(
      {},
      () => new Promise((resolve) => answers.push(() => resolve(answerOf("served")))),
    );
    const connection = new Connection(url).send(requests(10));
    const served = (): number => connection.received.split("served").length - 1;
    for (let n = 0; n < 10; n += 1) {
      await expect.poll(() => answers.length).toBe(n + 1);
      expect(served()).toBe(n);
      answers[n]?.();
    }
    await expect.poll(served).toBe(10);
  });

  test("has its last request carried out, too, if its body follows later", async () => {
    const bodies: string[] = [];
    const { url } = await listen({}, async (incoming) => {
      const read = incoming.read(10);
      const body = "ok" in read ? read : await read.bytes;
      bodies.push(body.ok ? new TextDecoder().decode(body.value) : "");
      return answerOf("served");
    });
    const post = (body: string): string => `POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 4\r\n\r\n${body}`;
    const connection = new Connection(url).send(post("ab12") + post("cd34") + post("ef"));
    await expect.poll(() => bodies).toEqual(["ab12", "cd34"]);
    connection.finish("56");
    await connection.closed;
    expect(bodies).toEqual(["ab12", "cd34", "ef56"]);
  });

  test("reads nothing of a later request's body while an earlier request runs", async () => {
    const { url } = await listen({}, async (incoming) => {
      if (incoming.target.endsWith("/slow")) await new Promise(() => {});
      return answerOf("served");
    });
    const get = (path: string): string => `GET ${path} HTTP/1.1\r\nhost: a\r\n\r\n`;
    const post = `POST /b HTTP/1.1\r\nhost: a\r\ncontent-length: ${LARGE.length}\r\n\r\n`;
    const connection = new Connection(url).send(get("/slow") + get("/a") + post);
    connection.send("x".repeat(LARGE.length));
    const other = new Connection(url);
    // As long as the server needs for many other requests, it takes no more than the system's buffers have.
    for (let n = 1; n <= 100; n += 1) {
      other.send(get("/"));
      await expect.poll(() => other.received.split("served").length - 1).toBe(n);
    }
    expect(connection.unsentBytes).toBeGreaterThan(LARGE.length / 2);
  });

  test("whose caller reads nothing has nothing more carried out", async () => {
    let begun = 0;
    const { url } = await listen({}, async () => {
      begun += 1;
      return answerOf(LARGE);
    });
    const connection = new Connection(url).unread().send(requests(3));
    await expect.poll(() => begun).toBe(1);
    const other = new Connection(url).finish(requests(1));
    expect((await other.closed).length).toBeGreaterThan(LARGE.length);
    expect(begun).toBe(2);
    connection.read();
    await expect.poll(() => begun).toBe(4);
  });

  test("with too many requests under way is closed, and the others are not even parsed", async () => {
    let parsed = 0;
    const count = (): void => void (parsed += 1);
    subscribe("http.server.request.start", count);
    onTestFinished(() => void unsubscribe("http.server.request.start", count));
    const { url } = await listen({}, async () => new Promise(() => {}));
    const others = new Connection(url).send(requests(32));
    await expect.poll(() => parsed).toBe(32);
    expect(await new Connection(url).send(requests(2_000)).closed).toBe("");
    expect(parsed).toBe(64);
    others.end();
  });

  test("with TLS has the same bounds", async () => {
    const answers: (() => void)[] = [];
    const tls = certified();
    const serveLater = (): Promise<HttpAnswer> =>
      new Promise((resolve) => answers.push(() => resolve(answerOf("served"))));
    const { url } = await listen({}, serveLater, tls);
    const open = (): TLSSocket => {
      const trusted = { ca: tls.cert, checkServerIdentity: () => undefined };
      const caller = connectTls(Number(new URL(url).port), "127.0.0.1", trusted).on("error", () => {});
      ends.push(() => caller.destroy());
      return caller;
    };
    const caller = open();
    caller.write(requests(3));
    for (let n = 0; n < 3; n += 1) {
      await expect.poll(() => answers.length).toBe(n + 1);
      answers[n]?.();
      await once(caller, "data");
    }
    const greedy = open().resume();
    greedy.write(requests(1_000));
    await once(greedy, "close");
    expect(answers).toHaveLength(4);
  });

  test("whose answer is a document that all share takes up nothing", async () => {
    const document = encodedOnce(() => "x".repeat(LARGE.length))({});
    const { url } = await listen({ unreadBytes: 100_000 }, async () =>
      answerOf(bodyOf(document, wallClock, () => {})),
    );
    const connections = [1, 2, 3].map(() => new Connection(url).unread().send(requests(1)));
    // Each of them is answered before the one of this connection.
    await new Connection(url).unread().send(requests(1)).begun();
    const received = await Promise.all(connections.map((connection) => connection.read().finish("").closed));
    for (const { length } of received) expect(length).toBeGreaterThan(LARGE.length);
  });

  test("whose answer is the oldest is closed when all take up too much", async () => {
    let begun = 0;
    const { url } = await listen({ unreadBytes: 2.5 * LARGE.length }, async () => {
      begun += 1;
      return answerOf(LARGE);
    });
    const ask = async (): Promise<Connection> => {
      const before = begun;
      const connection = new Connection(url).unread().send(requests(1));
      await expect.poll(() => begun).toBe(before + 1);
      return connection;
    };
    const connections = [await ask(), await ask(), await ask()];
    const received = connections.map((connection) => connection.read().finish("").closed);
    const isWhole = (await Promise.all(received)).map(({ length }) => length > LARGE.length);
    expect(isWhole).toEqual([false, true, true]);
  });

  test("whose caller takes nothing of an answer is closed, unlike one that waits for an answer", async () => {
    let answer = (): void => {};
    let cancelled = 0;
    const stream = (): ReadableStream =>
      new ReadableStream(
        { pull: (controller) => controller.enqueue(LARGE), cancel: () => void (cancelled += 1) },
        { highWaterMark: 0 },
      );
    const { url } = await listen({ unreadMs: 100 }, async (incoming) => {
      if (incoming.target.endsWith("/stream")) return answerOf(stream());
      return new Promise((resolve) => (answer = () => resolve(answerOf("served"))));
    });
    const waiting = new Connection(url).send(requests(1));
    new Connection(url).unread().send(requests(1).replace("/", "/stream"));
    await expect.poll(() => cancelled).toBe(1);
    answer();
    await expect.poll(() => waiting.received).toContain("served");
  });
});

describe("what is no valid request", () => {
  /** An answer of the application: a problem with an id. */
  const problem = (status: number, detail: string): RegExp =>
    new RegExp(`^HTTP/1\\.1 ${status} [^]*x-request-id: [^]*${detail}[^]*request_id`);
  const change = (key: string, version: string): string =>
    `PATCH /v1/admin/cells/1 HTTP/${version}\r\nhost: a\r\nauthorization: Bearer ${key}\r\n` +
    'content-type: application/json\r\ncontent-length: 34\r\n\r\n{"address":"https://cell.example"}';

  async function serve(): Promise<Served> {
    const served = await serveFiles(["1"], {});
    ends.push(() => served.close());
    const added = await served.host.dispatch(
      new Request("http://localhost/v1/admin/cells", {
        method: "POST",
        headers: { authorization: `Bearer ${served.keys.operator}`, "content-type": "application/json" },
        body: JSON.stringify({ cell_id: "1", name: "one", address: "https://one.example" }),
      }),
    );
    expect(added.status).toBe(201);
    return served;
  }

  test.each(["GET / HTTP/3.0\r\n\r\n", "GET / HTTP/1.1\r\nno colon\r\n\r\n", "\u0000\u0001\r\n\r\n"])(
    "is answered with a problem: %j",
    async (text) => {
      const { url } = await serve();
      expect(await new Connection(url).send(text).closed).toMatch(problem(400, "valid HTTP"));
    },
  );

  test.each(["", " HTTP/2.0"])("is answered with a problem: version %j", async (version) => {
    const { url } = await serve();
    const connection = new Connection(url).finish(`GET /healthz${version}\r\nhost: a\r\n\r\n`);
    expect(await connection.closed).toMatch(problem(400, "HTTP/1.1"));
  });

  test("is answered with a problem: credentials in the URL", async () => {
    const { url } = await serve();
    const connection = new Connection(url).finish("GET http://a:b@c/readyz HTTP/1.1\r\nhost: a\r\n\r\n");
    expect(await connection.closed).toMatch(problem(400, "credentials"));
  });

  test("is answered with a problem: no Host, CONNECT, another expectation", async () => {
    const { url } = await serve();
    const answerTo = (text: string): Promise<string> => new Connection(url).finish(text).closed;
    expect(await answerTo("GET /healthz HTTP/1.1\r\n\r\n")).toMatch(problem(400, "`Host`"));
    expect(await answerTo("CONNECT a:1 HTTP/1.1\r\nhost: a\r\n\r\n")).toMatch(problem(405, "no proxy"));
    expect(await answerTo("GET /healthz HTTP/1.1\r\nhost: a\r\nexpect: more\r\n\r\n")).toMatch(/ 200 /);
  });

  test("is answered with a problem, also while the rest of large headers is sent", async () => {
    const { url } = await serve();
    const connection = new Connection(url).send(`GET / HTTP/1.1\r\nlong: ${"x".repeat(5_000_000)}`);
    expect(await connection.closed).toMatch(problem(431, "32768 bytes"));
  });

  test("doesn't replace the answer to an earlier request", async () => {
    const { url, keys } = await serve();
    const next = "GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n";
    for (const [version, rest] of [
      ["1.0", next],
      ["1.1", "nothing\r\n\r\n"],
    ] as const) {
      const received = await new Connection(url).send(change(keys.operator, version) + rest).closed;
      expect(received).toMatch(/^HTTP\/1\.1 200 [^]*connection: close/i);
      expect(received.match(/HTTP\/1\.1/g)).toHaveLength(1);
    }
  });

  test("is answered by the application if it is in a body", async () => {
    const { url, keys } = await serve();
    const request = change(keys.operator, "1.1").replace(/content-length[^]*/, "transfer-encoding: chunked");
    const connection = new Connection(url).send(`${request}\r\n\r\n2\r\n{}\r\n-1\r\n`);
    expect(await connection.closed).toMatch(problem(400, "declared length"));
  });
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

  test("that is too large is sent to its end, and then the connection is closed", async () => {
    const served = await serveFiles(["1"], {});
    ends.push(() => served.close());
    const connection = new Connection(served.url).send(head(served.keys.cell("1"), 5_000_000));
    connection.send("x".repeat(5_000_000));
    expect(await connection.closed).toMatch(/ 413 [^]*connection: close[^]*body_bytes/i);
  });

  test("that is cut off harms no other request", async () => {
    const served = await serveFiles(["1"], {});
    ends.push(() => served.close());
    const other = new Connection(served.url);
    for (let n = 0; n < 50; n += 1) {
      const cut =
        n % 5 === 0 ? "CONNECT a:1 HTTP/1.1\r\n\r\n" : `${head(served.keys.cell("1"), 50)}{"creates"`;
      const connection = new Connection(served.url).send(cut);
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
  expect(connectionLimit(Infinity)).toBe(4_096);
  expect(connectionLimit(16_384)).toBe(4_096);
  expect(connectionLimit(1_024)).toBe(896);
  expect(connectionLimit(64)).toBe(32);
  expect(connectionLimit(1)).toBe(1);
});
