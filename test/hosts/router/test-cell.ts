/** A cell that serves what it owns, and answers 421 for everything else. */
import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { gzipSync } from "node:zlib";
import { misdirected } from "../../../src/users/cell/misdirected.ts";

/** The constant of RFC 6455, 1.3. */
const WEBSOCKET_GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

export class TestCell {
  readonly id: string;
  readonly names = new Set<string>();
  /** What arrived, as `method path hops`. */
  readonly arrived: string[] = [];
  /** Paths whose client went away before the answer was complete. */
  readonly left: string[] = [];
  readonly #streams = new Set<ServerResponse>();
  #address = "";
  readonly #server: Server;

  constructor(id: string) {
    this.id = id;
    this.#server = createServer((request, response) => this.#answer(request, response));
    this.#server.on("upgrade", (request: IncomingMessage, socket: Socket) => this.#upgrade(request, socket));
  }

  get address(): string {
    return this.#address;
  }

  async start(): Promise<this> {
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
    this.#address = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
    return this;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }

  /** Sends another event to everybody who reads events. */
  tell(): this {
    for (const stream of this.#streams) stream.write("data: 2\n\n");
    return this;
  }

  #arrive({ url = "/", method, headers }: IncomingMessage): { isOwn: boolean; page: string } {
    this.arrived.push(`${method} ${url} ${String(headers["leasehold-hops"])}`);
    const [, name = "", page = ""] = url.split("/");
    return { isOwn: this.names.has(name), page };
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const { isOwn, page } = this.#arrive(request);
    response.once("close", () => {
      if (!response.writableFinished) this.left.push(request.url ?? "");
    });
    if (!isOwn) {
      const answer = misdirected(request.headers) ?? { status: 404, headers: {}, body: "" };
      return void response.writeHead(answer.status, answer.headers).end(answer.body);
    }
    switch (page) {
      case "headers":
        return void response.setHeader("leasehold-secret", "x").end(JSON.stringify(request.headers));
      case "events": {
        response.writeHead(200, { "content-type": "text/event-stream" }).write("data: 1\n\n");
        this.#streams.add(response);
        return void response.once("close", () => this.#streams.delete(response));
      }
      case "hang":
        return;
      case "late":
        return void setTimeout(() => response.end("late"), 1_000);
      case "too-large":
        return void response.writeHead(413).end("too large");
      case "gzip":
        return void response
          .writeHead(200, { "content-encoding": "gzip", "content-type": "text/plain" })
          .end(gzipSync("long ".repeat(1_000)));
      case "connection":
        return void response
          .writeHead(200, { connection: "keep-alive, x-hop", "keep-alive": "timeout=9", "x-hop": "1" })
          .end();
      case "see-other":
        return void response.writeHead(303, { location: "/elsewhere", "set-cookie": ["a=1", "b=2"] }).end();
      default: {
        let bytes = 0;
        request.on("data", (chunk: Buffer) => (bytes += chunk.length));
        request.on("end", () => {
          const { "content-length": length, "transfer-encoding": encoding } = request.headers;
          response.end(JSON.stringify({ cell: this.id, bytes, length, encoding }));
        });
      }
    }
  }

  /** Echoes short text frames of a WebSocket. */
  #upgrade(request: IncomingMessage, socket: Socket): void {
    const { isOwn } = this.#arrive(request);
    socket.on("error", () => {});
    if (!isOwn) {
      const { body } = misdirected(request.headers) ?? { body: "" };
      const head = `HTTP/1.1 421 Misdirected Request\r\nContent-Length: ${body.length}`;
      return void socket.end(`${head}\r\nConnection: close\r\n\r\n${body}`);
    }
    const accept = createHash("sha1")
      .update(`${String(request.headers["sec-websocket-key"])}${WEBSOCKET_GUID}`)
      .digest("base64");
    socket.write(
      "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
        `Sec-WebSocket-Accept: ${accept}\r\n\r\n`,
    );
    socket.once("close", () => this.left.push(request.url ?? ""));
    socket.on("data", (frame) => {
      const length = (frame[1] ?? 0) & 0x7f;
      const isText = (frame[0] ?? 0) === 0x81;
      if (!isText) return void socket.end();
      const mask = frame.subarray(2, 6);
      const text = frame.subarray(6, 6 + length).map((byte, n) => byte ^ (mask[n % 4] ?? 0));
      socket.write(Buffer.concat([Buffer.from([0x81, length]), text]));
    });
  }
}
