/** What is recorded of requests, and what collectors and callers can do to them. */
import { afterEach, beforeEach, expect, test } from "vitest";
import { v4 as newUuid } from "uuid";
import { Collector, pathsOf } from "../../support/collector.ts";
import { taking, TracedHost, type Traced } from "./traced-host.ts";

const TRACE = "0af7651916cd43dd8448eb211c80319c";
const CALLER = "b7ad6b7169203331";
const sampled = { traceparent: `00-${TRACE}-${CALLER}-01` };

let collector: Collector;
let host: TracedHost | undefined;

beforeEach(async () => {
  collector = await Collector.start();
});
afterEach(async () => {
  host?.close();
  host = undefined;
  await collector.stop();
});

async function start(variables: Record<string, string> = {}): Promise<TracedHost> {
  host = await TracedHost.start(collector.url, variables);
  return host;
}

const begin = (
  on: TracedHost,
  cell: string,
  names: readonly string[],
  headers: Record<string, string> = {},
  lease = newUuid(),
): Promise<Traced> =>
  on.send("PUT", `/v1/cells/${cell}/leases/${lease}`, on.keys.cell(cell), {
    body: taking(...names),
    headers,
  });

/** Waits until the collector has this number of spans of a trace. */
const arrived = (traceId: string, count: number): Promise<void> =>
  expect.poll(() => collector.spansOf(traceId).length).toBe(count);

test("a caller's trace is continued, and nothing in it has a name or a key", async () => {
  const on = await start();
  const answer = await begin(on, "1", ["secret-name"], sampled);
  expect(answer.status).toBe(201);
  await arrived(TRACE, 7);
  const root = collector.spansOf(TRACE).find(({ spanId }) => spanId === answer.spanId);
  expect(root).toMatchObject({
    parentSpanId: CALLER,
    name: "beginLease",
    kind: 2,
    part: "worker",
    status: {},
    attributes: {
      "http.request.method": "PUT",
      "http.response.status_code": 201,
      "leasehold.code": "OK",
      "leasehold.role": "cell",
      "leasehold.cell": "1",
      "leasehold.request_id": answer.requestId,
    },
  });
  expect(collector.text).not.toContain("secret-name");
  expect(collector.text).not.toContain(on.keys.cell("1"));
});

test("a new trace has the digits of the request's id, as the log says, too", async () => {
  const on = await start({ LEASEHOLD_TRACE_SHARE: "1" });
  const answer = await begin(on, "1", ["ada"]);
  await arrived(answer.traceId, 7);
  const root = collector.spansOf(answer.traceId).find(({ spanId }) => spanId === answer.spanId);
  expect(root?.parentSpanId).toBeUndefined();
  expect(on.lines.at(-1)).toMatchObject({
    event: "request",
    fields: { request_id: answer.requestId, trace_id: answer.traceId, span_id: answer.spanId },
  });
});

test.each([
  ["no header", {}],
  ["an invalid header", { traceparent: `00-${TRACE}-${CALLER}` }],
  ["a trace id of zeros", { traceparent: `00-${"0".repeat(32)}-${CALLER}-01` }],
  ["only a tracestate", { tracestate: "vendor=secret" }],
])("with %s, a new trace begins", async (_, headers: Record<string, string>) => {
  const on = await start({ LEASEHOLD_TRACE_SHARE: "1" });
  const answer = await begin(on, "1", ["ada"], headers);
  await arrived(answer.traceId, 7);
  expect(collector.text).not.toContain(TRACE);
  expect(collector.text).not.toContain("secret");
});

test("the log has the caller's trace also if it is not traced", async () => {
  const on = await start();
  const answer = await begin(on, "1", ["ada"], { traceparent: `00-${TRACE}-${CALLER}-00` });
  expect(on.lines.at(-1)?.fields).toMatchObject({ trace_id: TRACE, span_id: answer.spanId });
});

test("with a share of 0, only callers with a key have traces, and only some in a second", async () => {
  const on = await start({ LEASEHOLD_CALLER_TRACES_PER_S: "1" });
  for (let n = 0; n < 3; n += 1) await begin(on, "1", [`a${n}`]);
  await begin(on, "1", ["b"], { traceparent: `00-${TRACE}-${CALLER}-00` });
  const wrong = await on.send("GET", "/v1/limits", "wrong", { headers: sampled });
  expect(wrong.status).toBe(401);
  const traced = await begin(on, "1", ["c"], sampled);
  for (let n = 0; n < 20; n += 1) await on.send("GET", "/v1/limits", on.keys.cell("1"), { headers: sampled });
  await expect.poll(() => collector.spans.map(({ spanId }) => spanId)).toContain(traced.spanId);
  // How many of the last 20 are traced depends on how long they took.
  const roots = collector.spans.filter(({ part, kind }) => part === "worker" && kind === 2);
  expect(roots.map(({ spanId }) => spanId)).toContain(traced.spanId);
  expect(roots.every(({ traceId }) => traceId === TRACE)).toBe(true);
  expect(roots.map(({ spanId }) => spanId)).not.toContain(wrong.spanId);
});

test("[N1] [B8] each caller sees its own spans of a shared message, and no other caller's", async () => {
  const on = await start({ LEASEHOLD_SHARDS: "1", LEASEHOLD_TRACE_SHARE: "1" });
  const held = newUuid();
  await begin(on, "1", ["held"], {}, held);
  const [one, two, blocked, found] = await Promise.all([
    begin(on, "1", ["one"]),
    begin(on, "1", ["two"]),
    begin(on, "2", ["held"]),
    on.send("GET", "/v1/route/ROUTES/held", on.keys.router),
  ]);
  expect([one, two, blocked, found].map(({ status }) => status)).toEqual([201, 201, 409, 200]);
  const root = (route: string): string => `worker ${route}`;
  const lookup = `${root("getRoute")} > worker shard.lookup`;
  await expect
    .poll(() => pathsOf(collector.spansOf(found.traceId)))
    .toEqual([
      root("getRoute"),
      lookup,
      `${lookup} > shard-0 shard.lookup`,
      `${lookup} > shard-0 shard.lookup > shard-0 ledger.inquire`,
      `${lookup} > shard-0 shard.lookup > shard-0 ledger.inquire > cell-1 ledger.inquire`,
    ]);
  const begun = `${root("beginLease")} > worker ledger.begin`;
  for (const [{ traceId }, cell] of [[one, 1] as const, [two, 1] as const, [blocked, 2] as const]) {
    // Every span is below the request of its own trace.
    const paths = (): string[] => pathsOf(collector.spansOf(traceId));
    await expect
      .poll(paths)
      .toContain(
        `${begun} > cell-${cell} ledger.begin > cell-${cell} shard.exchange > shard-0 shard.exchange`,
      );
    await expect.poll(() => paths().filter((path) => !path.startsWith(root("beginLease")))).toEqual([]);
    if (cell === 2)
      await expect.poll(() => paths().some((path) => path.endsWith("cell-1 ledger.inquire"))).toBe(true);
    else expect(paths().filter((path) => path.includes("inquire"))).toEqual([]);
  }
});

test.each(["refuse", "hang"] as const)("a collector that would %s delays no call", async (answer) => {
  const on = await start({ LEASEHOLD_TRACE_SHARE: "1" });
  collector.answer = answer;
  const lease = newUuid();
  // Longer than the batches wait, so that some calls are made while a request to the collector is under way.
  const untilMs = Date.now() + 1_500;
  let calls = 0;
  while (Date.now() < untilMs) {
    calls += 1;
    expect((await begin(on, "1", [`n${calls}`])).status).toBe(201);
  }
  expect((await begin(on, "1", ["last"], {}, lease)).status).toBe(201);
  const commit = await on.send("POST", `/v1/cells/1/leases/${lease}/commit`, on.keys.cell("1"));
  expect(commit.status).toBe(200);
  await expect.poll(() => on.lines.filter(({ event }) => event === "spans_lost").length).toBeGreaterThan(0);
  expect(collector.spans).toHaveLength(0);
});
