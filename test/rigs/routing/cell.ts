import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { misdirected } from "../../../src/users/cell/misdirected.ts";

/** A cell that serves the names in its rows, and answers 421 for all others. */
export class Cell {
  readonly id: string;
  readonly rows = new Set<string>();
  /** Names whose requests it serves even if it has no row. So it shows what the router believes. */
  readonly believed = new Set<string>();
  /** How many requests it has refused. */
  refused = 0;
  readonly #server: Server;

  constructor(id: string) {
    this.id = id;
    this.#server = createServer((request, response) => this.#answer(request, response));
    // Only the router closes connections. A connection that closes while it is used would be a 502.
    this.#server.keepAliveTimeout = 0;
  }

  /** Starts the cell, and returns its address. */
  async start(): Promise<string> {
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    request.resume().once("end", () => {
      const name = (request.url ?? "/").split("/")[1] ?? "";
      if (name === "" || this.rows.has(name) || this.believed.has(name)) return void response.end(this.id);
      this.refused += 1;
      const answer = misdirected(request.headers) ?? { status: 404, headers: {}, body: "" };
      response.writeHead(answer.status, answer.headers).end(answer.body);
    });
  }
}
