/** gRPC-Web as base64 text, in bytes: `application/grpc-web-text`, as older clients in browsers send it. */
import { beforeAll, expect, test } from "vitest";
import { Api, keyOf, startDeployment } from "../../support/workerd/api.ts";
import { at, encode } from "./bytes.ts";
import { BASE, beginBytes, send, SERVICE } from "./clients.ts";

const TYPE = "application/grpc-web-text";

let api: Api;

beforeAll(async () => {
  api = await startDeployment("1");
});

interface Sent {
  method?: string;
  type?: string;
  key?: "cell 1" | "";
  headers?: Record<string, string>;
  using?: Api;
}

async function post(
  body: string,
  { method = "BeginUpdate", type = TYPE, key = "cell 1", headers = {}, using = api }: Sent = {},
): Promise<Response> {
  const authorization = key === "" ? {} : { authorization: `Bearer ${await keyOf(key)}` };
  return send(
    using,
    new Request(`${BASE}/${SERVICE}/${method}`, {
      method: "POST",
      headers: { "content-type": type, accept: TYPE, "x-grpc-web": "1", ...authorization, ...headers },
      body,
    }),
  );
}

const base64 = (bytes: Uint8Array): string => btoa(String.fromCodePoint(...bytes));
const enveloped = (message: Uint8Array, flags = 0): Uint8Array =>
  Uint8Array.from([flags, 0, 0, message.length >> 8, message.length & 255, ...message]);

interface Answer {
  message: Uint8Array | undefined;
  trailers: string;
}

/** Reads an answer as such a client does: the text has padding, and its frames follow each other. */
async function framesOf(answer: Response): Promise<Answer> {
  expect([answer.status, answer.headers.get("content-type")]).toEqual([200, `${TYPE}+proto`]);
  // `text()` warns about types that are not declared to be text.
  const text = new TextDecoder().decode(await answer.arrayBuffer());
  expect(text.length % 4).toBe(0);
  const bytes = Uint8Array.from(atob(text), (char) => char.codePointAt(0) ?? 0);
  const found: Answer = { message: undefined, trailers: "" };
  for (let offset = 0; offset < bytes.length;) {
    const start = offset + 5;
    offset = start + new DataView(bytes.buffer).getUint32(offset + 1);
    if (bytes[start - 5] === 0x80) found.trailers = new TextDecoder().decode(bytes.slice(start, offset));
    else found.message = bytes.slice(start, offset);
  }
  return found;
}

const statusOf = async (answer: Response): Promise<string | undefined> =>
  /grpc-status: ?(\d+)/.exec((await framesOf(answer)).trailers)?.[1];

test("a call and its answer are base64", async () => {
  for (const type of [TYPE, `${TYPE}+proto`]) {
    const { message, trailers } = await framesOf(await post(base64(enveloped(beginBytes())), { type }));
    expect(trailers).toMatch(/grpc-status: ?0/);
    expect(message && at(message, 1)).toBe(1n);
  }
});

test("a text may have padding within it, where a client has put parts together", async () => {
  for (const cut of [1, 4, 5, 6, 40]) {
    const whole = enveloped(beginBytes());
    expect(await statusOf(await post(base64(whole.slice(0, cut)) + base64(whole.slice(cut))))).toBe("0");
  }
});

test("a gzipped message of the oldest generation is read", async () => {
  const list = encode([
    [1, 1],
    [2, 3],
    [4, 100],
  ]);
  const gzip = new Blob([list as Uint8Array<ArrayBuffer>])
    .stream()
    .pipeThrough(new CompressionStream("gzip"));
  const body = base64(enveloped(new Uint8Array(await new Response(gzip).arrayBuffer()), 1));
  const headers = { "grpc-encoding": "gzip" };
  expect(await statusOf(await post(body, { method: "ListRecords", headers }))).toBe("0");
});

test("[W5] what is no base64, and what is cut, is an invalid argument", async () => {
  const whole = base64(enveloped(beginBytes()));
  for (const body of [
    "?",
    "no base64!",
    `${whole.slice(0, 8)}%${whole.slice(8)}`,
    whole.slice(0, -8),
    "AA==",
  ])
    expect(await statusOf(await post(body)), body).toBe("3");
  // One character has too few bits for a byte.
  expect(await statusOf(await post("A"))).toBe("3");
  expect(await statusOf(await post(base64(enveloped(Uint8Array.from([255])))))).toBe("3");
});

test("[W1] a key is checked first, and the text is bounded before it is decoded", async () => {
  expect(await statusOf(await post("?", { key: "" }))).toBe("16");
  const small = new Api({ LEASEHOLD_BODY_BYTES: "2048" });
  // It would be small enough as bytes.
  const text = base64(enveloped(encode([[999, "a".repeat(1_800)]])));
  expect(text.length).toBeGreaterThan(2_048);
  expect(await statusOf(await post(text, { using: small }))).toBe("8");
  // Not even base64, and still it is too large.
  expect(await statusOf(await post("?".repeat(2_049), { using: small }))).toBe("8");
});

test("an unknown method and JSON as text are refused", async () => {
  const unknown = await post("AAAAAAA=", { method: "NoSuchMethod" });
  expect([unknown.status, unknown.headers.get("grpc-status")]).toEqual([200, "12"]);
  expect((await post("AAAAAAA=", { type: `${TYPE}+json` })).status).toBe(415);
});
