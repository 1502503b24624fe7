/** A coordinator whose answers a test decides, so that a router can be made to remember an old one. */
import { once } from "node:events";
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";

interface Owner {
  cell: string;
  epoch: number;
  position: number;
}

const SHARD = 3;

export class ScriptedCoordinator {
  readonly addresses = new Map<string, string>();
  /** The number of lookups that were asked. */
  asked = 0;
  isDown = false;
  readonly #owners = new Map<string, Owner>();
  #position = 100;
  readonly #server: Server = createServer((request, response) => {
    this.#answer(request.method ?? "", request.url ?? "", () => json(request), response).catch(
      (error: unknown) => response.writeHead(500).end(String(error)),
    );
  });

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

  /** Gives a name to a cell. Routers that remember another cell are not told. */
  move(value: string, cell: string): void {
    this.#position += 1;
    this.#owners.set(value, { cell, epoch: this.#position, position: this.#position });
  }

  async #answer(
    method: string,
    url: string,
    body: () => Promise<unknown>,
    response: ServerResponse,
  ): Promise<void> {
    const { pathname } = new URL(url, "http://coordinator");
    const send = (status: number, answer: unknown): void => {
      const type = status < 400 ? "application/json" : "application/problem+json";
      response.writeHead(status, { "content-type": type, "cache-control": "no-store" });
      response.end(JSON.stringify(answer));
    };
    if (this.isDown) return send(503, { code: "UNAVAILABLE", detail: "down", status: 503 });
    if (pathname === "/v1/cells") {
      const cells = [...this.addresses].map(([id, address]) => ({ id, address, status: "ACTIVE" }));
      return send(200, { cells, age_ms: 0 });
    }
    if (pathname === "/v1/route" && method === "POST") {
      const { names } = (await body()) as { names: { type: string; value: string }[] };
      return send(200, { results: names.map((name) => ({ name, ...this.#find(name.value) })) });
    }
    const [, value] = /^\/v1\/route\/ROUTES\/(.+)$/.exec(pathname) ?? [];
    if (value === undefined) return send(404, { code: "NOT_FOUND", detail: "no such route", status: 404 });
    const { found, ...answer } = this.#find(decodeURIComponent(value));
    return found
      ? send(200, answer)
      : send(404, { code: "NOT_FOUND", reason: "NOT_FOUND", detail: "free", status: 404, route: answer });
  }

  #find(value: string): { found: boolean } & Record<string, unknown> {
    this.asked += 1;
    const key = Buffer.from(value).toString("hex").padEnd(16, "0").slice(0, 16);
    const common = { key, shard: SHARD, settled: true, age_ms: 0 };
    const owner = this.#owners.get(value);
    if (owner === undefined) return { found: false, ...common, position: this.#position };
    const { cell, epoch, position } = owner;
    return {
      found: true,
      cell: { id: cell, address: this.addresses.get(cell) ?? "" },
      epoch,
      ...common,
      position,
    };
  }
}
