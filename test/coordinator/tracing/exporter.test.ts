/** What happens to spans while the collector works, fails or hangs. Time is that of the test. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { SpanExporter, type Span } from "../../../src/coordinator/tracing/exporter.ts";
import { Collector } from "../../support/collector.ts";
import { VirtualClock } from "../../support/virtual-clock.ts";

const MAX_SPANS = 2_000;

let collector: Collector;
let clock: VirtualClock;
let exporter: SpanExporter;
let work: Promise<unknown>[];
const requests = vi.spyOn(globalThis, "fetch");
const log = vi.fn<(event: string, fields: Record<string, string | number | boolean>) => void>();

beforeEach(async () => {
  collector = await Collector.start();
  clock = new VirtualClock();
  work = [];
  log.mockClear();
  requests.mockClear();
  exporter = new SpanExporter("cell-1", { url: collector.url, headers: { "x-key": "secret" } }, clock, log);
});
afterEach(() => collector.stop());

let spans = 0;
const span = (): Span => ({
  traceId: "0af7651916cd43dd8448eb211c80319c",
  spanId: (spans += 1).toString(16).padStart(16, "0"),
  parentSpanId: undefined,
  name: "ledger.begin",
  kind: "server",
  startedAtMs: clock.now(),
  endedAtMs: clock.now(),
  attributes: { "leasehold.code": "OK" },
  isError: false,
});

function record(count: number): void {
  for (let n = 0; n < count; n += 1) {
    const each = span();
    exporter.open(each);
    exporter.finish(each);
  }
  exporter.wake((each) => work.push(each));
}

/** Lets the exporter send what it has. No time passes while the collector answers. */
async function send(): Promise<void> {
  const sent = Promise.all(work.splice(0)).then(() => true);
  for (let isSent = false; !isSent;) {
    await clock.pass(1_000);
    if (collector.answer !== "hang")
      await Promise.allSettled(requests.mock.results.map(({ value }) => value as unknown));
    isSent = await Promise.race([sent, clock.turn().then(() => false)]);
  }
}

test("spans are sent some at a time, with the headers of the collector", async () => {
  record(1_200);
  expect(collector.requests).toHaveLength(0);
  await send();
  expect(collector.requests.map((request) => [request["path"], request["x-key"]])).toEqual(
    Array.from({ length: 3 }, () => ["/", "secret"]),
  );
  expect(collector.spans).toHaveLength(1_200);
  expect(new Set(collector.spans.map(({ spanId }) => spanId)).size).toBe(1_200);
  expect(exporter.lost).toBe(0);
});

test("a collector that refuses loses its spans, which are counted and logged once a minute", async () => {
  collector.answer = "refuse";
  record(3);
  await send();
  expect(exporter.lost).toBe(3);
  // During the pause, nothing is sent, and nothing waits for it.
  record(2);
  await send();
  expect([collector.requests.length, exporter.lost]).toEqual([1, 3]);
  collector.answer = "ok";
  await clock.pass(5_000);
  record(1);
  await send();
  expect(collector.spans).toHaveLength(3);
  expect(log.mock.calls).toEqual([["spans_lost", { part: "cell-1", lost_total: 3, cause: "status 503" }]]);
});

test("a collector that is not there loses spans, too", async () => {
  await collector.stop();
  record(3);
  await send();
  expect(exporter.lost).toBe(3);
  expect(log).toHaveBeenCalledWith("spans_lost", { part: "cell-1", lost_total: 3, cause: "TypeError" });
  collector = await Collector.start();
});

test("while a collector hangs, a limited number of spans waits, and further ones are lost", async () => {
  collector.answer = "hang";
  record(1);
  await clock.pass(1_000);
  await expect.poll(() => collector.requests.length).toBe(1);
  record(MAX_SPANS + 10);
  expect(exporter.lost).toBe(10);
  await send();
  expect(exporter.lost).toBe(11);
  expect(collector.requests).toHaveLength(1);
});

test("a call that never returns is exported as failed, and a limited number is open", async () => {
  const open = Array.from({ length: MAX_SPANS }, () => span());
  expect(open.every((each) => exporter.open(each))).toBe(true);
  expect(exporter.open(span())).toBe(false);
  expect(exporter.lost).toBe(1);
  exporter.wake((each) => work.push(each));
  await send();
  expect(collector.spans).toHaveLength(MAX_SPANS);
  expect(collector.spans.every(({ status }) => status.code === 2)).toBe(true);
  // The answer that comes after all is ignored.
  for (const each of open) exporter.finish(each);
  exporter.wake((each) => work.push(each));
  await send();
  expect(collector.spans).toHaveLength(MAX_SPANS);
});

test("spans are also sent if the runtime drops the work of the request that was sending them", async () => {
  const dropped = { now: () => clock.now(), after: () => () => {} };
  exporter = new SpanExporter("worker", { url: collector.url, headers: {} }, dropped, log);
  record(1);
  work = [];
  record(1);
  expect(work).toHaveLength(0);
  await clock.pass(60_000);
  record(1);
  expect(work).toHaveLength(1);
});
