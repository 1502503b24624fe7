import { randomBytes } from "node:crypto";
import { Host } from "../../../src/hosts/node/host.ts";
import { MemoryStore } from "../../../src/hosts/node/object-store.ts";
import { SqliteDatabase } from "../../../src/hosts/node/sqlite-database.ts";
import { systemClock } from "../../../src/hosts/standalone/system-clock.ts";
import { makeKeys, type TestKeys } from "../../../src/users/testing/coordinator.ts";

/** An answer, with the ids of its request's span, which follow from its request id. */
export interface Traced {
  status: number;
  requestId: string;
  traceId: string;
  spanId: string;
}

/** A coordinator in this process that sends its spans to a collector. */
export class TracedHost {
  readonly lines: { event: string; fields: Record<string, unknown> }[] = [];
  readonly keys: TestKeys;
  readonly #host: Host;

  private constructor(host: Host, keys: TestKeys, lines: TracedHost["lines"]) {
    this.#host = host;
    this.keys = keys;
    this.lines = lines;
  }

  static async start(url: string, variables: Record<string, string> = {}): Promise<TracedHost> {
    const secret = randomBytes(32).toString("hex");
    const lines: TracedHost["lines"] = [];
    const host = new Host({
      clock: systemClock,
      log: (event, fields) => void lines.push({ event, fields }),
      variables: {
        LEASEHOLD_SIGNING_SECRET: secret,
        LEASEHOLD_SHARDS: "2",
        LEASEHOLD_REQUEST_LOG: "all",
        LEASEHOLD_OTLP_ENDPOINT: url,
        LEASEHOLD_TRACE_SHARE: "0",
        ...variables,
      },
      store: () => new MemoryStore(),
      d1: new SqliteDatabase(),
    });
    const keys = await makeKeys(secret, ["1", "2"], systemClock.now(), 3_600);
    const traced = new TracedHost(host, keys, lines);
    for (const cell of ["1", "2"])
      await traced.send("POST", "/v1/admin/cells", keys.operator, {
        body: { cell_id: cell, name: `cell-${cell}`, address: `https://cell-${cell}.test` },
      });
    return traced;
  }

  async send(
    method: string,
    path: string,
    key: string | undefined,
    { body, headers = {} }: { body?: object; headers?: Record<string, string> } = {},
  ): Promise<Traced> {
    const request = new Request(`http://localhost${path}`, {
      method,
      headers: {
        ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const response = await this.#host.dispatch(request);
    await response.text();
    const requestId = response.headers.get("x-request-id") ?? "";
    const digits = requestId.replaceAll("-", "");
    return { status: response.status, requestId, traceId: digits, spanId: digits.slice(-16) };
  }

  close(): void {
    this.#host.close();
  }
}

/** A batch that takes these names. */
export const taking = (...names: readonly string[]): object => ({
  creates: names.map((value, id) => ({
    bucket: { type: "ROUTES", value },
    subject: { type: "USER", id },
    source: { type: "RAILS_TABLE_USERS", id },
  })),
});
