import type { Batch } from "../../client/api-types.ts";
import type { Fetch } from "../../client/connection.ts";

export type Operation = "begin" | "commit" | "rollback" | "get" | "list" | "lookup" | "other";

export interface SeenCall {
  operation: Operation;
  uuid: string | undefined;
  body: unknown;
  status: number | "lost";
}

/**
 * What happens to a call: `lose` it before it takes effect, `lose_answer` after that, or `refuse` it with an
 * unclear status. `unavailable`: it takes effect, and is answered with 503 and a problem document.
 */
export type Fate = "deliver" | "lose" | "lose_answer" | "refuse" | "unavailable";

const problem503 = {
  status: 503,
  headers: new Headers({ "content-type": "application/problem+json" }),
  text: async () =>
    JSON.stringify({ status: 503, code: "UNAVAILABLE", detail: "try again", retryable: true }),
};

/** The network between a cell and its coordinator, with faults that a test chooses. */
export class FaultyFetch {
  readonly calls: SeenCall[] = [];
  fate: (call: Pick<SeenCall, "operation" | "uuid">) => Fate = () => "deliver";
  /** Awaited before each call is sent. */
  before: (call: Omit<SeenCall, "status">) => Promise<void> = async () => {};
  readonly fetch: Fetch;

  constructor(inner: Fetch) {
    this.fetch = async (url, init) => {
      const { pathname } = new URL(url);
      // A cell compares its types beside its calls, whenever it likes.
      if (pathname === "/v1/types") return inner(url, init);
      const call = callOf(init.method, pathname, init.body);
      await this.before(call);
      const fate = this.fate(call);
      const seen: SeenCall = { ...call, status: "lost" };
      this.calls.push(seen);
      if (fate === "lose") throw new TypeError("fetch failed");
      if (fate === "refuse") {
        seen.status = 503;
        return {
          status: 503,
          headers: new Headers({ "content-type": "text/plain" }),
          text: async () => "no",
        };
      }
      const response = await inner(url, init);
      if (fate === "lose_answer") {
        await response.text();
        throw new TypeError("fetch failed");
      }
      if (fate === "unavailable") {
        await response.text();
        seen.status = 503;
        return problem503;
      }
      seen.status = response.status;
      return response;
    };
  }

  of(operation: Operation): SeenCall[] {
    return this.calls.filter((call) => call.operation === operation);
  }

  /** The operations in order, such as `begin commit rollback`. */
  get story(): string {
    return this.calls.map(({ operation }) => operation).join(" ");
  }

  /** How many claims each begin was to create or destroy. */
  get batchSizes(): number[] {
    return this.of("begin").map(({ body }) => {
      const { creates = [], destroys = [] } = body as Batch;
      return creates.length + destroys.length;
    });
  }

  forget(): void {
    this.calls.length = 0;
    this.fate = () => "deliver";
    this.before = async () => {};
  }
}

function callOf(method: string, path: string, body: string | undefined): Omit<SeenCall, "status"> {
  const [, uuid, decision] = /^\/v1\/cells\/[^/]+\/leases\/([^/]+)(?:\/(commit|rollback))?$/.exec(path) ?? [];
  const json: unknown = body === undefined ? undefined : JSON.parse(body);
  if (uuid !== undefined) {
    if (decision === "commit" || decision === "rollback") return { operation: decision, uuid, body: json };
    return { operation: method === "PUT" ? "begin" : "get", uuid, body: json };
  }
  const operation = path.endsWith("/leases") ? "list" : path.endsWith("/records/lookup") ? "lookup" : "other";
  return { operation, uuid: undefined, body: json };
}
