/** Requests to a router, with the times between which their answers were given. */
import { Agent, request as httpRequest, type IncomingMessage } from "node:http";

export interface Sent {
  path: string;
  method: "GET" | "POST";
}

/** A request, and what is done with its answer. */
export interface Planned extends Sent {
  received: (answer: Received) => void;
}

/** An answer, or a status of 0 if there was none. Times are those of `performance.now()`. */
export interface Received extends Sent {
  sentMs: number;
  receivedMs: number;
  status: number;
  headers: IncomingMessage["headers"];
  body: string;
}

/**
 * Why the router has no answer about a name. `later`: 503 with Retry-After, nobody knows its cell now.
 * `unreachable`: 502 or 504, the router knows the cell and got no answer of it in time, as on a busy machine.
 */
export function refusalOf({
  status,
  headers,
  body,
}: Pick<Received, "status" | "headers" | "body">): "later" | "unreachable" | undefined {
  if (status === 503 && /^[1-9]\d*$/.test(headers["retry-after"] ?? "")) return "later";
  const isLost = (status === 502 || status === 504) && /"The cell (does|did) not answer/.test(body);
  return isLost ? "unreachable" : undefined;
}

/** A request without an answer in this time hangs. The router waits for a cell for 100 s. */
const HANG_MS = 300_000;
/** Requests of more seconds have no answer on a machine that is too slow for the pace, so it gets fewer. */
const MAX_UNDER_WAY_S = 4;
/** With a larger part of its requests skipped, a run shows too little. */
const MAX_SKIPPED = 1 / 4;
const TICK_MS = 5;

/** Sends requests at a pace that does not depend on the answers. */
export class Requests {
  readonly #url: string;
  readonly #agent = new Agent({ keepAlive: true });
  readonly #underWay = new Set<Promise<void>>();
  /** Requests that were not sent, because too many others had no answer yet. */
  skipped = 0;
  #sent = 0;

  constructor(url: string) {
    this.#url = url;
  }

  /** Whether the pace was not kept. */
  get isTooSlow(): boolean {
    return this.skipped > MAX_SKIPPED * (this.skipped + this.#sent);
  }

  /** Sends `perSecond` requests until the signal aborts, and waits for their answers. */
  async pace(perSecond: number, next: () => Planned, signal: AbortSignal): Promise<void> {
    const startMs = performance.now();
    let due = 0;
    while (!signal.aborted) {
      await new Promise((resume) => setTimeout(resume, TICK_MS));
      for (const all = ((performance.now() - startMs) / 1_000) * perSecond; due < all; due += 1) {
        if (this.#underWay.size >= MAX_UNDER_WAY_S * perSecond) {
          this.skipped += 1;
          continue;
        }
        this.#sent += 1;
        const { received, ...sent } = next();
        const work = this.send(sent)
          .then(received)
          .finally(() => this.#underWay.delete(work));
        this.#underWay.add(work);
      }
    }
    await Promise.all(this.#underWay);
  }

  async send(sent: Sent): Promise<Received> {
    const sentMs = performance.now();
    for (;;) {
      const { answer, isStaleSocket } = await this.#try(sent);
      // A server may close an idle connection at the moment at which a client uses it again.
      if (!isStaleSocket) return { ...sent, sentMs, receivedMs: performance.now(), ...answer };
    }
  }

  close(): void {
    this.#agent.destroy();
  }

  #try({ path, method }: Sent): Promise<{
    answer: Pick<Received, "status" | "headers" | "body">;
    isStaleSocket: boolean;
  }> {
    return new Promise((resolve) => {
      const failed = (error: Error): void =>
        resolve({
          answer: { status: 0, headers: {}, body: error.message },
          isStaleSocket: request.reusedSocket && (error as NodeJS.ErrnoException).code === "ECONNRESET",
        });
      const request = httpRequest(`${this.#url}${path}`, { method, agent: this.#agent, timeout: HANG_MS });
      request.once("timeout", () => request.destroy(new Error(`no answer within ${HANG_MS} ms`)));
      request.once("error", failed);
      request.once("response", (response) => {
        const { statusCode: status = 0, headers } = response;
        let body = "";
        response.setEncoding("utf8").on("data", (chunk: string) => (body += chunk));
        response.once("end", () => resolve({ answer: { status, headers, body }, isStaleSocket: false }));
        response.once("error", failed);
      });
      request.end(method === "POST" ? "a short body" : undefined);
    });
  }
}
