/** Traces of both servers, from the request to the shards. test/coordinator/tracing has the details. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, onTestFinished, test } from "vitest";
import { freePort } from "../../../src/hosts/workerd/free-port.ts";
import { Collector, pathsOf } from "../../support/collector.ts";
import { Server } from "./server.ts";

const folder = mkdtempSync(join(tmpdir(), "leasehold-tracing-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const TRACE = "0af7651916cd43dd8448eb211c80319c";
const CALLER = "b7ad6b7169203331";
const LEASE = "/v1/cells/1/leases/00000000-0000-4000-8000-000000000001";

/** The spans of a call, below the one of its request. */
const below = (request: string, call: string): string[] => {
  const ledger = `${request} > worker ${call} > cell-1 ${call}`;
  const shards = [0, 1].map((n) => `${ledger} > cell-1 shard.exchange > shard-${n} shard.exchange`);
  const exchange = `${ledger} > cell-1 shard.exchange`;
  return [request, `${request} > worker ${call}`, ledger, exchange, exchange, ...shards];
};

test.each(["start", "standalone"] as const)(
  "npm run %s: a begin and a commit are one trace",
  async (script) => {
    const collector = await Collector.start();
    onTestFinished(() => collector.stop());
    const variables = {
      LEASEHOLD_SHARDS: "2",
      LEASEHOLD_OTLP_ENDPOINT: collector.url,
      LEASEHOLD_OTLP_HEADERS: "authorization=Bearer%20collector-key",
      LEASEHOLD_TRACE_SHARE: "0",
    };
    const state = join(folder, script);
    const server = new Server(await freePort(), state, variables, [], script);
    onTestFinished(async () => void (await server.end("SIGKILL")));
    const { url, keys } = await server.ready();
    const call = async (method: string, path: string, body?: object): Promise<number> => {
      const headers = {
        authorization: `Bearer ${keys.cells["1"] ?? ""}`,
        traceparent: `00-${TRACE}-${CALLER}-01`,
        ...(body === undefined ? {} : { "content-type": "application/json" }),
      };
      const init = { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) };
      return (await fetch(`${url}${path}`, init)).status;
    };
    const creates = ["ada", "bob", "eve"].map((value, id) => ({
      bucket: { type: "ROUTES", value },
      subject: { type: "USER", id },
      source: { type: "RAILS_TABLE_USERS", id },
    }));
    expect(await call("PUT", LEASE, { creates })).toBe(201);
    expect(await call("POST", `${LEASE}/commit`)).toBe(200);
    const authorize = "worker beginLease > worker ledger.authorize";
    const expected = [
      ...below("worker beginLease", "ledger.begin"),
      // The first begin of an isolate reads the types, and the ledger checks the key before.
      authorize,
      `${authorize} > cell-1 ledger.authorize`,
      ...below("worker commitLease", "ledger.decide"),
    ].toSorted();
    await expect.poll(() => pathsOf(collector.spansOf(TRACE))).toEqual(expected);
    const roots = collector.spansOf(TRACE).filter(({ parentSpanId }) => parentSpanId === CALLER);
    expect(roots.map(({ name }) => name).toSorted()).toEqual(["beginLease", "commitLease"]);
    expect(new Set(collector.spans.map(({ traceId }) => traceId))).toEqual(new Set([TRACE]));
    expect(collector.requests[0]).toMatchObject({
      authorization: "Bearer collector-key",
      path: "/v1/traces",
    });
    const { stderr } = await server.end("SIGTERM");
    const output = server.stdout + stderr;
    expect(output).toContain(`"trace_id":"${TRACE}"`);
    expect(output).not.toContain("collector-key");
  },
);
