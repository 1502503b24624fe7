import { Agent, request } from "node:http";

/** Who has not answered by then has failed. */
const ANSWER_MS = 15_000;

/** One keep-alive connection for each client, as long-running cells have. */
export class HttpClient {
  readonly #base: URL;
  readonly #agent: Agent;

  constructor(url: string, connections: number) {
    this.#base = new URL(url);
    this.#agent = new Agent({ keepAlive: true, maxSockets: connections, scheduling: "fifo" });
  }

  /** The status; 0 when there was none. What is in the body is read and thrown away. */
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
