import { Agent, request } from "node:http";

/** A call without an answer after this time has failed. */
const ANSWER_MS = 15_000;

/** Keeps one connection open per client, as long-running cells do. */
export class HttpClient {
  readonly #base: URL;
  readonly #agent: Agent;

  constructor(url: string, connections: number) {
    this.#base = new URL(url);
    this.#agent = new Agent({ keepAlive: true, maxSockets: connections, scheduling: "fifo" });
  }

  /** Returns the status, or 0 when there was no answer. Reads the body and discards it. */
  send(method: string, path: string, key: string, body?: string): Promise<number> {
    return new Promise((resolve) => {
      const headers: Record<string, string | number> = { authorization: `Bearer ${key}` };
      if (body !== undefined) {
        headers["content-type"] = "application/json";
        headers["content-length"] = Buffer.byteLength(body);
      }
      const { hostname, port, pathname } = this.#base;
      const prefix = pathname === "/" ? "" : pathname;
      const call = request(
        { agent: this.#agent, hostname, port, path: `${prefix}${path}`, method, headers },
        (answer) => {
          answer.on("end", () => resolve(answer.statusCode ?? 0));
          answer.on("error", () => resolve(0));
          answer.resume();
        },
      );
      call.on("error", () => resolve(0));
      call.setTimeout(ANSWER_MS, () => call.destroy());
      call.end(body);
    });
  }

  close(): void {
    this.#agent.destroy();
  }
}
