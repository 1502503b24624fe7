/** The traces of requests on their way to cells and to the coordinator. */
import { expect, test } from "vitest";
import { createRoutes } from "../../../src/users/router/index.ts";
import { createProxy } from "../../../src/users/router/proxy/proxy.ts";
import { isTraceparent } from "../../../src/users/router/lookups/http-source.ts";
import { parseTraceparent } from "../../../src/coordinator/tracing/tracer.ts";
import { prefixes } from "./proxy/fixture.ts";

const GIVEN = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const INVALID = GIVEN.replace("00-", "ff-");

interface Received {
  cell: (string | null)[][];
  coordinator: (string | undefined)[];
}

/** Sends requests for the same name through a proxy. Returns the headers that arrived. */
async function through(
  traceShare: number | undefined,
  ...requests: Record<string, string>[]
): Promise<Received> {
  const received: Received = { cell: [], coordinator: [] };
  const facts = { key: "9f2c47d1a05be836", shard: 3, position: 4_711, settled: true, age_ms: 0 };
  const answer = { cell: { id: "7", address: "https://cell-7.example.com" }, epoch: 12, ...facts };
  const routes = createRoutes({
    url: "https://leasehold.example.com",
    key: "secret",
    reports: false,
    fetch: async (_, { headers }) => {
      received.coordinator.push(headers["traceparent"]);
      return new Response(JSON.stringify(answer));
    },
  });
  const proxy = createProxy({
    routes,
    ruleset: prefixes,
    ...(traceShare === undefined ? {} : { traceShare }),
    fetch: async (_, init) => {
      const headers = new Headers(init?.headers);
      received.cell.push([headers.get("traceparent"), headers.get("tracestate")]);
      return new Response("fine");
    },
  });
  for (const headers of requests) await proxy(new Request("https://router.example.com/ada", { headers }));
  routes.close();
  return received;
}

test("a valid trace reaches the cell, and the coordinator if it has to be asked", async () => {
  const client = { traceparent: GIVEN, tracestate: "vendor=1" };
  const second = { traceparent: GIVEN.replace("b7", "c8") };
  // The second request is answered from memory.
  expect(await through(0, client, second)).toEqual({
    cell: [
      [GIVEN, "vendor=1"],
      [second.traceparent, null],
    ],
    coordinator: [GIVEN],
  });
});

test.each([
  [0, false],
  [1, true],
])("with a share of %d, a request without a valid trace gets one", async (share, isSampled) => {
  for (const headers of [{}, { traceparent: INVALID, tracestate: "vendor=1" }]) {
    const { cell, coordinator } = await through(share, headers);
    const [[traceparent, tracestate] = []] = cell;
    expect(parseTraceparent(traceparent ?? undefined)).toMatchObject({ isSampled });
    expect(tracestate).toBeNull();
    expect(coordinator).toEqual([traceparent]);
  }
});

test("without a share, the headers stay as they are, and the coordinator gets none", async () => {
  const client = { traceparent: INVALID, tracestate: "vendor=1" };
  expect(await through(undefined, client, {})).toEqual({
    cell: [
      [INVALID, "vendor=1"],
      [null, null],
    ],
    coordinator: [undefined],
  });
});

test.each([-0.1, 1.1, Number.NaN, "1"])("a share of %j is refused", (traceShare) => {
  const options = { routes: { find: () => {} }, ruleset: prefixes, traceShare } as never;
  expect(() => createProxy(options)).toThrow("`traceShare` must be a number from 0 to 1");
});

test.each([
  GIVEN,
  INVALID,
  `${GIVEN}-more`,
  `cc${GIVEN.slice(2)}-more`,
  GIVEN.toUpperCase(),
  GIVEN.replace(/-b7.*-/, `-${"0".repeat(16)}-`),
  GIVEN.replace(/-0af.*c-/, `-${"0".repeat(32)}-`),
  `${GIVEN}\n`,
  "",
])("the router and the coordinator agree whether %j is valid", (header) => {
  expect(isTraceparent(header)).toBe(parseTraceparent(header) !== undefined);
});
