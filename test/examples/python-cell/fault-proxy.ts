import { EventEmitter, once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { FaultyFetch } from "../../../src/users/cell/conformance/faulty-fetch.ts";
import type { TestedCoordinator } from "../../users/cell/scenarios/drizzle.ts";

const PASSED_ON = ["content-type", "retry-after", "leasehold-history", "x-request-id"];

/** A server between a process and the coordinator, with the faults of `network`. */
export class FaultProxy {
  readonly network: FaultyFetch;
  /** The history headers of the calls, in order. */
  readonly histories: string[] = [];
  readonly #events = new EventEmitter();
  /** The number of requests that the coordinator has dealt with. */
  #handled = 0;
  readonly #server = createServer((request, response) => void this.#pass(request, response));
  readonly #coordinator: TestedCoordinator;

  constructor(coordinator: TestedCoordinator) {
    this.#coordinator = coordinator;
    this.network = new FaultyFetch(coordinator.fetch);
  }

  /** Starts the server and returns its URL. */
  async start(): Promise<string> {
    await new Promise<void>((listening) => this.#server.listen(0, "127.0.0.1", listening));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((stopped) => this.#server.close(stopped));
  }

  /** Waits until the coordinator has dealt with so many requests, even if their process is gone. */
  async untilHandled(count: number): Promise<void> {
    while (this.#handled < count) await once(this.#events, "handled");
  }

  async #pass(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = "", url = "", headers } = request;
    const history = headers["leasehold-history"];
    if (typeof history === "string") this.histories.push(history);
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks).toString();
    const { host: _, connection: __, "content-length": ___, ...sent } = headers;
    try {
      const answer = await this.network.fetch(`${this.#coordinator.url}${url}`, {
        method,
        headers: sent as Record<string, string>,
        signal: new AbortController().signal,
        redirect: "manual",
        ...(body === "" ? {} : { body }),
      });
      const text = await answer.text();
      response.statusCode = answer.status;
      for (const name of PASSED_ON) {
        const value = answer.headers.get(name);
        if (value !== null) response.setHeader(name, value);
      }
      response.end(text);
    } catch {
      request.socket.destroy();
    } finally {
      this.#handled += 1;
      this.#events.emit("handled");
    }
  }
}
