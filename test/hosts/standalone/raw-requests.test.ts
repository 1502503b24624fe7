/** Bytes that no HTTP client sends, because Node's parser is another one than that of workerd. */
import { once } from "node:events";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { v4 as newUuid } from "uuid";
import { afterAll, beforeAll, expect, test } from "vitest";
import { claim, freshName } from "../../suites/conformance/leases.ts";
import { serveFiles, type Served } from "./served.ts";

let served: Served;

beforeAll(async () => {
  served = await serveFiles(["1"], { LEASEHOLD_BODY_BYTES: "4096" });
  const body = JSON.stringify({ cell_id: "1", name: "cell-1", address: "https://cell-1.test" });
  const headers = { authorization: `Bearer ${served.keys.operator}`, "content-type": "application/json" };
  expect((await fetch(`${served.url}/v1/admin/cells`, { method: "POST", headers, body })).status).toBe(201);
});

afterAll(() => served.close());

/** Sends bytes on one connection, ends it, and returns the statuses of the answers, and all of their text. */
async function exchange(bytes: string | Buffer): Promise<{ statuses: number[]; answer: string }> {
  const socket = connect({ port: Number(new URL(served.url).port), host: "127.0.0.1", allowHalfOpen: true });
  await once(socket, "connect");
  socket.end(bytes);
  const answer = await text(socket);
  const statuses = [...answer.matchAll(/^HTTP\/1\.1 (\d{3})/gm)].map(([, status]) => Number(status));
  return { statuses, answer };
}

const lines = (...all: string[]): string => `${all.join("\r\n")}\r\n\r\n`;
const authorized = (): string => `Authorization: Bearer ${served.keys.cell("1")}`;
const HOST = "Host: leasehold.test";
const JSON_TYPE = "Content-Type: application/json";

interface Begin {
  headers: (bytes: number) => string[];
  /** The body as it is sent, by default the batch. */
  framed?: (batch: string) => string | Buffer;
}

const length = (bytes: number): string => `Content-Length: ${bytes}`;
const chunked = (batch: string): string => `${batch.length.toString(16)}\r\n${batch}\r\n0\r\n\r\n`;
const CHUNKED = "Transfer-Encoding: chunked";

async function begin({ headers, framed = (batch) => batch }: Begin) {
  const path = `/v1/cells/1/leases/${newUuid()}`;
  const batch = JSON.stringify({ creates: [claim(freshName())] });
  const head = lines(`PUT ${path} HTTP/1.1`, HOST, authorized(), JSON_TYPE, ...headers(batch.length));
  const sent = await exchange(Buffer.concat([Buffer.from(head), Buffer.from(framed(batch))]));
  const lease = await fetch(served.url + path, { headers: { authorization: authorized().slice(15) } });
  return { ...sent, isBegun: lease.status === 200 };
}

test.each<[title: string, request: Begin]>([
  ["in chunks", { headers: () => [CHUNKED], framed: chunked }],
  [
    "in chunks of one byte, with an extension and a trailer",
    {
      headers: () => [CHUNKED],
      framed: (batch) => `${[...batch].map((byte) => `1;x=y\r\n${byte}\r\n`).join("")}0\r\nX-Cell: 2\r\n\r\n`,
    },
  ],
  ["with a header twice", { headers: (bytes) => [length(bytes), "Accept: a", "Accept: b"] }],
])("a body %s is read", async (_, request) => {
  expect(await begin(request)).toMatchObject({ statuses: [201], isBegun: true });
});

test.each<[title: string, status: number | undefined, request: Begin]>([
  [
    "a chunk whose size is no number",
    400,
    { headers: () => [CHUNKED], framed: () => "zz\r\n{}\r\n0\r\n\r\n" },
  ],
  [
    "a chunk that is longer than its size",
    400,
    { headers: () => [CHUNKED], framed: (b) => `2\r\n${b}\r\n0\r\n\r\n` },
  ],
  ["chunks without an end", 400, { headers: () => [CHUNKED], framed: (b) => chunked(b).slice(0, -5) }],
  ["a length and chunks", 400, { headers: (bytes) => [length(bytes), CHUNKED], framed: chunked }],
  ["two lengths", 400, { headers: (bytes) => [length(bytes), length(1)] }],
  ["a length that is longer than the body", 400, { headers: (bytes) => [length(bytes + 1)] }],
  ["a negative length", 400, { headers: () => [length(-1)] }],
  ["a length that is shorter than the body", 400, { headers: (bytes) => [length(bytes - 1)] }],
  [
    "a body that is not UTF-8",
    400,
    { headers: () => [length(3)], framed: () => Buffer.from([0x22, 0xff, 0x22]) },
  ],
  [
    "a body that is cut within a character",
    400,
    { headers: () => [length(2)], framed: () => Buffer.from([0x22, 0xc3]) },
  ],
  ["a length above the limit", 413, { headers: () => [length(4_097)], framed: () => " ".repeat(4_097) }],
  ["chunks above the limit", 413, { headers: () => [CHUNKED], framed: () => chunked(" ".repeat(4_097)) }],
  ["a space in the name of a header", 400, { headers: (bytes) => [length(bytes), "X A: b"] }],
  ["headers that are too long", 431, { headers: (bytes) => [length(bytes), `X-A: ${"a".repeat(100_000)}`] }],
])("%s: %s", async (_, status, request) => {
  const { statuses, isBegun } = await begin(request);
  expect([statuses[0], isBegun]).toEqual([status, false]);
});

test.each([
  ["/v1/records/EMAILS/a%zz", 400],
  ["/v1/records/EMAILS/a%ff", 400],
  ["/v1/records/EMAILS/a%00", 400],
  ["/v1/records/EMAILS/a%", 400],
  ["/v1/records/EMAILS/%c3%a9@example.com", 404],
  ["/v1/records/EMAILS/\u00e9@example.com", 400],
  ["/v1/records/EMAILS/a b", 400],
  ["http://elsewhere.test/v1/records/EMAILS/a", 404],
  ["http://elsewhere.test", 200],
  ["//v1/limits", 404],
  ["/v1/%6cimits", 404],
  // Dot segments are not resolved, so no other route is called.
  ["/v1/records/../limits", 400],
  ["/v1/limits?a=%zz", 400],
  ["*", 404],
])("the target %s: %i", async (target, status) => {
  const head = lines(`GET ${target} HTTP/1.1`, HOST, authorized(), "Connection: close");
  expect((await exchange(Buffer.from(head, "latin1"))).statuses).toEqual([status]);
});

test("a request that hides in the body of another one is not answered", async () => {
  const hidden = lines("GET /healthz?hidden=1 HTTP/1.1", HOST);
  const { statuses, answer } = await exchange(
    lines("GET /healthz HTTP/1.1", HOST, length(hidden.length)) + hidden + lines("GET /nope HTTP/1.1", HOST),
  );
  // A body that is not read ends the connection.
  expect(statuses).toEqual([200]);
  expect(answer).not.toContain("hidden");
});

test("a request without a Host, and one in two lines, are refused", async () => {
  const heads = [lines("GET /healthz HTTP/1.1"), lines("GET /healthz HTTP/1.1", "Host:")];
  for (const head of [...heads, lines("GET /healthz\n HTTP/1.1", HOST)])
    expect((await exchange(head)).statuses).toEqual([400]);
});

test.each(["Host: other.test", "host: leasehold.test", "Host: a/v1/limits?"])(
  "a second %s is refused",
  async (second) => {
    const { statuses, answer } = await exchange(lines("GET /healthz HTTP/1.1", HOST, second));
    expect([statuses, answer.includes("`Host` must be one host name")]).toEqual([[400], true]);
  },
);

test("HTTP/1.0 needs no Host, as load balancers send their health checks", async () => {
  for (const head of [lines("GET /healthz HTTP/1.0"), lines("GET /healthz HTTP/1.0", "Host:")])
    expect((await exchange(head)).statuses).toEqual([200]);
});
