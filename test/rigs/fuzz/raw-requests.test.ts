/**
 * Requests that no HTTP client sends, as bytes. Some never reach the Worker: the HTTP layer of workerd and
 * the entry of Miniflare refuse them with their own texts and without a request id. In a deployment,
 * Cloudflare's edge does that.
 */
import * as fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { routeIds } from "../../../src/coordinator/api/contract.ts";
import { wrongEffect } from "./effects.ts";
import { isStandalone, SETTLE_MS } from "./hosts.ts";
import { nearlyValidRequests } from "./mutations.ts";
import {
  asksForPosition,
  finishShard,
  isBehind,
  printable,
  untilDone,
  wrongLog,
  wrongProblem,
} from "./oracles.ts";
import { FuzzServer, type Received, type Sent } from "./server.ts";
import { fuzz, TEST_MS, tooFewRuns } from "./settings.ts";
import { routeOf, sentOf, validRequests, type FuzzRequest } from "./fuzz-request.ts";
import { exchange, hasMark, HIDDEN, LAST, marked } from "./raw-connection.ts";

let server: FuzzServer;

beforeAll(async () => {
  server = await FuzzServer.start();
}, TEST_MS);

afterAll(() => server.stop());

/** A request in parts that can be changed one by one. */
interface Message {
  line: string;
  headers: string[];
  /** The body as it is framed. */
  body: Buffer;
}

interface Twist {
  note: string;
  apply: (message: Message, sent: Sent) => Message;
  /** It must be refused. */
  isRefused?: true;
  /** It may reach another route, so its effects are not checked. */
  isOther?: true;
  /** It changes the body only. */
  isBody?: true;
  /** The local runtime answers it with a 500 of its own before the Worker sees it. */
  isTooMuch?: true;
}

function messageOf({ method, target, headers, body }: Sent): Message {
  return {
    line: `${method} ${target} HTTP/1.1`,
    headers: [
      "Host: fuzz.example",
      ...headers.map(([name, value]) => `${name}: ${value}`),
      ...(body === undefined ? [] : [`Content-Length: ${body.length}`]),
    ],
    body: Buffer.from(body ?? []),
  };
}

const bytesOf = ({ line, headers, body }: Message): Buffer =>
  Buffer.concat([Buffer.from(`${line}\r\n${headers.join("\r\n")}\r\n\r\n`, "latin1"), body]);

const hidden = `${marked(HIDDEN)}\r\n`;

const withLine = (
  note: string,
  of: (method: string, target: string) => string,
  more: Omit<Twist, "note" | "apply"> = {},
): Twist => ({
  note,
  apply: (message, { method, target }) => ({ ...message, line: of(method, target) }),
  ...more,
});

const withHeader = (header: string, more: Omit<Twist, "note" | "apply"> = {}): Twist => ({
  note: JSON.stringify(header.slice(0, 80)),
  apply: (message) => ({ ...message, headers: [...message.headers, header] }),
  ...more,
});

const withoutHeader = (headers: readonly string[], name: RegExp): string[] =>
  headers.filter((header) => !name.test(header));

/** Frames the same body in another way. */
const framed = (
  note: string,
  headers: readonly string[],
  of: (body: Buffer) => string | Buffer,
  more: Omit<Twist, "note" | "apply"> = {},
): Twist => ({
  note,
  apply: (message) => ({
    ...message,
    headers: [
      ...withoutHeader(message.headers, /^content-length/i),
      ...headers.map((header) => header.replace("LENGTH", String(message.body.length))),
    ],
    body: Buffer.from(of(message.body)),
  }),
  isBody: true,
  ...more,
});

const chunked = (body: Buffer): Buffer =>
  Buffer.concat([
    ...(body.length === 0 ? [] : [Buffer.from(`${body.length.toString(16)}\r\n`), body, Buffer.from("\r\n")]),
    Buffer.from("0\r\n\r\n"),
  ]);

const refusedOnly = { isRefused: true } as const;
const other = { isOther: true } as const;
const tooMuch = { isRefused: true, isTooMuch: true } as const;

const TWO_SPACES = "two spaces";

const METHODS = [
  "HEAD",
  "OPTIONS",
  "TRACE",
  "DELETE",
  "PROPFIND",
  "PATCH",
  "PUT",
  "POST",
  "GET",
  "get",
  "FOO",
  "G\u0000T",
  "POST\t",
];

const twists: readonly Twist[] = [
  // The request line
  ...METHODS.map((method) =>
    withLine(`method ${JSON.stringify(method)}`, (_, target) => `${method} ${target} HTTP/1.1`, other),
  ),
  withLine("CONNECT", (_, target) => `CONNECT ${target} HTTP/1.1`, tooMuch),
  withLine("OPTIONS *", () => "OPTIONS * HTTP/1.1", tooMuch),
  withLine("absolute form", (method, target) => `${method} http://evil.example${target} HTTP/1.1`),
  withLine(
    "absolute form with credentials",
    (method, target) => `${method} http://operator:x@evil.example${target} HTTP/1.1`,
    other,
  ),
  withLine("HTTP/1.0", (method, target) => `${method} ${target} HTTP/1.0`),
  withLine("HTTP/0.9", (method, target) => `${method} ${target}`, refusedOnly),
  withLine("HTTP/3.0", (method, target) => `${method} ${target} HTTP/3.0`, refusedOnly),
  withLine(TWO_SPACES, (method, target) => `${method}  ${target}  HTTP/1.1`, refusedOnly),
  withLine("a tab", (method, target) => `${method}\t${target}\tHTTP/1.1`, refusedOnly),
  withLine("a NUL in the path", (method, target) => `${method} ${target}\u0000 HTTP/1.1`, refusedOnly),
  withLine("Latin-1 in the path", (method, target) => `${method} ${target}\u00ff HTTP/1.1`, other),
  withLine("a line feed in the path", (method, target) => `${method} ${target}\n HTTP/1.1`, refusedOnly),
  withLine("a fragment", (method, target) => `${method} ${target}#/v1/admin/keys HTTP/1.1`),
  withLine("a second question mark", (method, target) => `${method} ${target}?x=1?y HTTP/1.1`, other),
  withLine("two slashes", (method, target) => `${method} /${target} HTTP/1.1`, other),
  withLine("a trailing slash", (method, target) => `${method} ${target}/ HTTP/1.1`, other),
  withLine("upper case", (method, target) => `${method} ${target.toUpperCase()} HTTP/1.1`, other),
  withLine("backslashes", (method, target) => `${method} ${target.replaceAll("/", "\\")} HTTP/1.1`, other),
  withLine("dot segments", (method, target) => `${method} /x/..${target} HTTP/1.1`),
  withLine("encoded dot segments", (method, target) => `${method} /x/%2e%2E${target} HTTP/1.1`),
  withLine("dots beyond the root", (method, target) => `${method} /../../..${target} HTTP/1.1`),
  withLine(
    "encoded letters",
    (method, target) => `${method} ${target.replace("v1", "%761")} HTTP/1.1`,
    other,
  ),
  withLine(
    "encoded slashes",
    (method, target) => `${method} ${target.replaceAll("/", "%2f")} HTTP/1.1`,
    other,
  ),
  withLine(
    "overlong slashes",
    (method, target) => `${method} ${target.replaceAll("/", "%c0%af")} HTTP/1.1`,
    other,
  ),
  withLine("matrix parameters", (method, target) => `${method} ${target};role=operator HTTP/1.1`, other),
  withLine(
    "a very long path",
    (method, target) => `${method} ${target}${"a".repeat(100_000)} HTTP/1.1`,
    other,
  ),
  // Headers
  withHeader("Host: again.example", tooMuch),
  withHeader("X-A: b\r\n c"),
  withHeader("X-A: b\rSet-Cookie: c"),
  withHeader("X-A: b\nX-B: c"),
  withHeader(`X-A: b\r\n\r\n${hidden}`, other),
  withHeader("X-A: \u0000", refusedOnly),
  withHeader("X A: b", refusedOnly),
  withHeader(": b", refusedOnly),
  withHeader("X-A : b", refusedOnly),
  withHeader("no colon", refusedOnly),
  withHeader(`X-A: ${"a".repeat(100_000)}`),
  withHeader(Array.from({ length: 5_000 }, (_, n) => `X-${n}: a`).join("\r\n")),
  withHeader(Array.from({ length: 20_000 }, () => "X-A: a").join("\r\n"), refusedOnly),
  withHeader("X-Request-Id: a b"),
  withHeader("X-Request-Id: \u00ff"),
  withHeader(`X-Request-Id: ${"a".repeat(65)}`),
  // The runtime turns it into a GET.
  withHeader(
    "Connection: Upgrade\r\nUpgrade: " +
      "websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    other,
  ),
  withHeader("Connection: authorization, content-type"),
  withHeader("Expect: 100-continue"),
  withHeader("Accept-Encoding: identity;q=x, \u00ff"),
  withHeader("Range: bytes=0-1"),
  withHeader("If-None-Match: *"),
  // Only Miniflare's own sockets obey these.
  withHeader("MF-CF-Blob: none"),
  withHeader('MF-CF-Blob: {"country":"XX"}'),
  withHeader("MF-Original-URL: none"),
  withHeader("MF-Original-URL: http://evil.example/v1/admin/keys"),
  withHeader("MF-Route-Override: none"),
  {
    note: "two keys",
    apply: (message) => ({ ...message, headers: [...message.headers, "Authorization: Bearer x"] }),
    isOther: true,
  },
  {
    note: "no Host",
    apply: (message) => ({ ...message, headers: withoutHeader(message.headers, /^host/i) }),
    isRefused: true,
  },
  {
    note: "a Host that is none",
    apply: (message) => ({
      ...message,
      headers: ["Host: a b:c", ...withoutHeader(message.headers, /^host/i)],
    }),
    ...tooMuch,
  },
  // Bodies
  framed("chunked", ["Transfer-Encoding: chunked"], chunked),
  framed(
    "chunked, with an extension and a trailer",
    ["Transfer-Encoding: chunked"],
    (body) => `0${body.length.toString(16)};x="y"\r\n${body.toString("latin1")}\r\n0\r\nX-Cell: 2\r\n\r\n`,
    other,
  ),
  framed(
    "Content-Length and chunked",
    ["Content-Length: LENGTH", "Transfer-Encoding: chunked"],
    chunked,
    other,
  ),
  framed("chunked and Content-Length", ["Transfer-Encoding: chunked", "Content-Length: 3"], chunked, other),
  framed(
    "a request after the chunks",
    ["Content-Length: 500", "Transfer-Encoding: chunked"],
    (body) => Buffer.concat([chunked(body), Buffer.from(hidden)]),
    other,
  ),
  framed(
    "a request within Content-Length",
    ["Content-Length: 500"],
    (body) =>
      Buffer.concat([body, Buffer.from(`\r\n\r\n${hidden}`), Buffer.alloc(500, "\n")]).subarray(0, 500),
    other,
  ),
  framed("two lengths", ["Content-Length: LENGTH", "Content-Length: 1"], (body) => body, refusedOnly),
  framed("two lengths in one", ["Content-Length: LENGTH, LENGTH"], (body) => body, refusedOnly),
  framed("a length with a sign", ["Content-Length: +LENGTH"], (body) => body, refusedOnly),
  framed("a negative length", ["Content-Length: -1"], (body) => body, refusedOnly),
  framed("an enormous length", ["Content-Length: 99999999999999999999"], (body) => body, refusedOnly),
  framed("a length that is longer than the body", ["Content-Length: 100000"], (body) => body, refusedOnly),
  framed("an unknown encoding", ["Transfer-Encoding: xchunked"], chunked, refusedOnly),
  framed(
    "two encodings",
    ["Transfer-Encoding: chunked", "Transfer-Encoding: identity"],
    chunked,
    refusedOnly,
  ),
  framed("an encoding with a space before the colon", ["Transfer-Encoding : chunked"], chunked, refusedOnly),
  framed(
    "a chunk with a negative length",
    ["Transfer-Encoding: chunked"],
    () => "-2\r\n{}\r\n0\r\n\r\n",
    other,
  ),
  framed(
    "a chunk with an enormous length",
    ["Transfer-Encoding: chunked"],
    () => "fffffffffffffffff\r\n{}\r\n0\r\n\r\n",
    other,
  ),
  framed(
    "chunks without an end",
    ["Transfer-Encoding: chunked"],
    (body) => `${body.length.toString(16)}\r\n${body.toString("latin1")}\r\n`,
    other,
  ),
  framed(
    "two megabytes in chunks",
    ["Transfer-Encoding: chunked"],
    () => `${`10000\r\n${" ".repeat(65_536)}\r\n`.repeat(32)}0\r\n\r\n`,
    refusedOnly,
  ),
  framed("only a head, then the end of the connection", ["Content-Length: 5"], () => "", other),
];

const shown = (twist: Twist, message: Message): string =>
  printable(
    `${twist.note}\n\n${bytesOf({
      ...message,
      headers: message.headers.map((header) =>
        /^authorization/i.test(header) ? "Authorization: …" : header,
      ),
    })
      .subarray(0, 3_000)
      .toString("latin1")}`,
  );

function wrongExchange(twist: Twist, request: FuzzRequest, answers: readonly Received[]): string | undefined {
  if (answers.some((answer) => hasMark(answer, HIDDEN)) && !twist.note.includes("X-A"))
    return "a hidden request was answered";
  const isWhole = hasMark(answers.at(-1), LAST);
  if (isWhole) whole += 1;
  const own = isWhole ? answers.slice(0, -1) : answers;
  for (const answer of own) {
    const wrong = wrongOne(twist, request, answer);
    if (wrong !== undefined) return wrong;
  }
  const changes = server.state.changes();
  const [first] = own;
  const refusal = { status: 400, headers: {}, text: "" };
  if (own.every(({ status }) => status >= 400))
    return wrongEffect(changes, request, first ?? refusal, server);
  if (twist.isRefused && !isAccepted(twist, request)) return "this must be refused";
  // If it reached another route or method, its effects are not known here. That route is tested elsewhere.
  return twist.isOther || first === undefined || first.status >= 400
    ? undefined
    : wrongEffect(changes, request, first, server);
}

/** Node's parser accepts spaces in the request line. The standalone server ignores the body of a GET. */
const isAccepted = ({ note, isBody }: Twist, { id }: FuzzRequest): boolean =>
  isStandalone && (note === TWO_SPACES || (isBody === true && routeOf(id).method === "GET"));

/** An answer without a request id is not from the Worker. */
function wrongOne(twist: Twist, request: FuzzRequest, answer: Received): string | undefined {
  const { status, headers, text } = answer;
  if (headers["x-request-id"] !== undefined) {
    // The answer to a HEAD doesn't say why.
    const mayBeBehind = status === 503 && text === "" && asksForPosition(request);
    if (status >= 500 && !mayBeBehind && !isBehind(answer)) return "a 5xx";
    return status < 400 || text === "" ? undefined : wrongProblem(answer);
  }
  if (status === 500) return twist.isTooMuch ? undefined : "a 5xx of the runtime";
  return [400, 403, 404, 405, 413, 414, 431, 501].includes(status)
    ? undefined
    : `the runtime answered ${status}`;
}

const RUNS = 120;
const twisted = new Set<string>();
/** Exchanges whose last request was answered. */
let whole = 0;

test(
  "malformed requests are refused or parsed as one request, never as two",
  async () => {
    const requests = fc.oneof(...routeIds.map((id) => validRequests(id)));
    const of = (which: fc.Arbitrary<number>) => fc.record({ request: requests, which });
    const check = async ({ request, which }: { request: FuzzRequest; which: number }): Promise<void> => {
      const twist = twists[which % twists.length];
      if (twist === undefined) return;
      twisted.add(twist.note);
      const sent = sentOf(server, request);
      const message = twist.apply(messageOf(sent), sent);
      await untilDone(server);
      const answers = await exchange(server.port, bytesOf(message)).catch((error: unknown) => {
        throw new Error(
          `${error instanceof Error ? error.message : String(error)}\n\n${shown(twist, message)}`,
        );
      });
      await new Promise((resume) => setTimeout(resume, SETTLE_MS));
      const wrong = wrongExchange(twist, request, answers) ?? wrongLog(server, false);
      for (const answer of answers) await finishShard(server, answer);
      if (wrong === undefined) return;
      throw new Error(
        [
          wrong,
          shown(twist, message),
          ...answers.map(({ status, text }) => `${status} ${text.slice(0, 800)}`),
        ].join("\n\n"),
      );
    };
    const each = twists.map((_, which) => of(fc.constant(which)));
    await fuzz(RUNS, of(fc.nat(10_000)), check, each);
    expect((await server.send({ method: "GET", target: "/readyz", headers: [] })).status).toBe(200);
  },
  TEST_MS,
);

test("every change was tried", ({ skip }) => {
  const tooFew = tooFewRuns(RUNS);
  if (tooFew !== undefined) skip(tooFew);
  expect(twisted.size).toBe(new Set(twists.map(({ note }) => note)).size);
  expect(whole).toBeGreaterThan(RUNS / 4);
});

/**
 * The caller and the request are determined by the key, the method and the URL alone, so these headers must
 * have no effect.
 */
const IDLE_HEADERS: readonly [string, string][] = [
  ["x-forwarded-for", "127.0.0.1"],
  ["x-forwarded-host", "evil.example"],
  ["x-forwarded-proto", "javascript"],
  ["x-forwarded-prefix", "/v1/admin"],
  ["forwarded", "for=127.0.0.1;host=evil.example"],
  ["x-real-ip", "127.0.0.1"],
  ["x-original-url", "/v1/admin/keys"],
  ["x-rewrite-url", "/v1/admin/keys"],
  ["x-http-method-override", "POST"],
  ["x-http-method", "DELETE"],
  ["x-method-override", "PUT"],
  ["x-cell", "2"],
  ["x-cell-id", "2"],
  ["x-cell-key", "2"],
  ["x-role", "operator"],
  ["x-api-key", "operator"],
  ["proxy-authorization", "Bearer operator"],
  ["cookie", "authorization=Bearer operator; role=operator"],
  ["cf-connecting-ip", "127.0.0.1"],
  ["cf-worker", "leasehold"],
  ["cf-access-jwt-assertion", "a.b.c"],
  ["cf-ray", "1"],
  ["cdn-loop", "leasehold"],
  ["origin", "https://evil.example"],
  ["referer", "https://evil.example/"],
  ["accept", "text/html"],
  ["accept-language", "*"],
  ["prefer", "return=minimal"],
  ["idempotency-key", "1"],
  ["if-match", "*"],
  ["x-middleware-subrequest", "1"],
  ["upgrade-insecure-requests", "1"],
];

const VARYING_TIMES = /"(request_id|last_pulled_at|complete_through|as_of|expires_at)":"[^"]*"/g;

/** Removes what differs between two equal calls. */
const steady = ({ status, text }: Received): string =>
  `${status} ${text.replaceAll(VARYING_TIMES, "").replaceAll(/"(?:\w+_)?(?:age|ago|idle)_ms":\d+/g, "")}`;

test(
  "headers of proxies and of other frameworks have no effect",
  async () => {
    const reading = routeIds.filter(
      (id) => routeOf(id).method === "GET" || id === "lookupRecords" || id === "lookupRoutes",
    );
    const requests = fc.oneof(
      ...reading.map((id) => validRequests(id)),
      ...reading.map((id) => nearlyValidRequests(id)),
    );
    const headers = fc.uniqueArray(fc.constantFrom(...IDLE_HEADERS), { minLength: 1, maxLength: 6 });
    await fuzz(60, fc.record({ request: requests, headers }), async ({ request, headers: more }) => {
      const plain = sentOf(server, request);
      await untilDone(server);
      const one = await server.send(plain);
      const two = await server.send({ ...plain, headers: [...plain.headers, ...more] });
      expect(steady(two), `${plain.method} ${plain.target} with ${JSON.stringify(more)}`).toBe(steady(one));
      expect(wrongEffect(server.state.changes(), request, one, server)).toBeUndefined();
    });
  },
  TEST_MS,
);
