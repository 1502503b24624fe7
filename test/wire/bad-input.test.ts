/** Bodies and addresses that no client of the wire should send. */
import { beforeAll, expect, test } from "vitest";
import { Api, env, keyOf, startDeployment } from "../support/workerd/api.ts";
import { watchedNamespace } from "../support/workerd/counting.ts";
import { BASE, beginBytes, send, SERVICE } from "./clients.ts";

let api: Api;

beforeAll(async () => {
  api = await startDeployment("1", "2");
});

interface Sent {
  method?: string;
  path?: string;
  type?: string;
  key?: string;
  headers?: Record<string, string>;
  body?: Uint8Array | string;
}

async function post(
  {
    method = "POST",
    path = "BeginUpdate",
    type = "application/proto",
    key = "cell 1",
    headers = {},
    body,
  }: Sent,
  using = api,
): Promise<Response> {
  return send(
    using,
    new Request(`${BASE}/${path.includes("/") ? path : `${SERVICE}/${path}`}`, {
      method,
      headers: {
        ...(type === "" ? {} : { "content-type": type }),
        ...(key === "" ? {} : { authorization: `Bearer ${await keyOf(key as "cell 1")}` }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: body as Uint8Array<ArrayBuffer> }),
    }),
  );
}

const problemOf = async (answer: Response): Promise<[number, string]> => {
  const { code } = (await answer.json()) as { code: string };
  return [answer.status, code];
};

const gzipped = async (bytes: Uint8Array): Promise<Uint8Array> =>
  new Uint8Array(
    await new Response(
      new Blob([bytes as Uint8Array<ArrayBuffer>]).stream().pipeThrough(new CompressionStream("gzip")),
    ).arrayBuffer(),
  );

test("a compressed request is read", async () => {
  const headers = { "content-encoding": "gzip" };
  expect((await post({ headers, body: await gzipped(beginBytes()) })).status).toBe(200);
});

test("[W1] a message over the limit is refused, also if it is compressed", async () => {
  const small = new Api({ LEASEHOLD_BODY_BYTES: "2048" });
  const large = new Uint8Array(4_096);
  expect(await problemOf(await post({ body: large }, small))).toEqual([429, "resource_exhausted"]);
  const bomb = await gzipped(new Uint8Array(1_000_000));
  expect(bomb.length).toBeLessThan(2_048);
  const headers = { "content-encoding": "gzip" };
  expect(await problemOf(await post({ headers, body: bomb }, small))).toEqual([429, "resource_exhausted"]);
});

test("[W5] [W7] a message that is cut, or is none, is an invalid argument", async () => {
  const whole = beginBytes();
  for (const body of [whole.slice(0, -3), Uint8Array.from([255, 255, 255]), "not a message"])
    expect(await problemOf(await post({ body }))).toEqual([400, "invalid_argument"]);
  const headers = { "content-encoding": "gzip" };
  for (const body of [whole, (await gzipped(whole)).slice(0, -12)])
    expect(await problemOf(await post({ headers, body }))).toEqual([400, "invalid_argument"]);
  expect(await problemOf(await post({ headers: { "content-encoding": "br" }, body: whole }))).toEqual([
    400,
    "invalid_argument",
  ]);
  expect(await problemOf(await post({ type: "application/json", body: "{" }))).toEqual([
    400,
    "invalid_argument",
  ]);
  expect(
    await problemOf(await post({ type: "application/json", body: '{"cellId":"1","no_such_field":1}' })),
  ).toEqual([400, "invalid_argument"]);
});

test("[W5] gRPC-Web: a cut envelope and a message of another length are errors in the trailers", async () => {
  const whole = beginBytes();
  for (const body of [
    new Uint8Array(3),
    Uint8Array.from([0, 0, 0, 0, 99, ...whole]),
    Uint8Array.from([0, 0, 0, 0, 1, 255]),
  ]) {
    const answer = await post({ type: "application/grpc-web+proto", body });
    expect(answer.status).toBe(200);
    expect(await answer.text()).toMatch(/grpc-status: ?3\r\n/);
  }
});

test("an unknown method, service or media type is refused, and so are methods of HTTP", async () => {
  for (const path of ["NoSuchMethod", "no.such.Service/Method", `${SERVICE}/BeginUpdate/more`, `${SERVICE}/`])
    expect(await problemOf(await post({ path, body: beginBytes() }))).toEqual([404, "unimplemented"]);
  const web = await post({ path: "NoSuchMethod", type: "application/grpc-web", body: beginBytes() });
  expect([web.status, web.headers.get("grpc-status")]).toEqual([200, "12"]);
  for (const type of ["application/grpc", "text/plain", ""])
    expect((await post({ type, body: beginBytes() })).status).toBe(415);
  for (const method of ["PUT", "DELETE"])
    expect((await post({ method, body: beginBytes() })).status).toBe(405);
  // A begin changes something, so it can't be a GET.
  expect((await post({ method: "GET" })).status).toBe(405);
});

test("[W1] nothing is looked up for a caller who may not call", async () => {
  const calls: string[] = [];
  const watched = (name: "DIRECTORY" | "CELL_LEDGER" | "CLAIM_SHARD") =>
    watchedNamespace(name, env[name], (call) => {
      calls.push(call);
      return undefined;
    });
  const watching = new Api({
    DIRECTORY: watched("DIRECTORY"),
    CELL_LEDGER: watched("CELL_LEDGER"),
    CLAIM_SHARD: watched("CLAIM_SHARD"),
  });
  for (const key of ["", "cell 2", "router", "lhk_1"])
    expect((await post({ key, body: beginBytes() }, watching)).status).toBe(
      key === "cell 2" || key === "router" ? 403 : 401,
    );
  expect(calls).toEqual([]);
  expect((await post({ body: beginBytes() }, watching)).status).toBe(200);
  expect(calls).not.toEqual([]);
});

test("[W1] nothing of a body is read before its key is verified", async () => {
  for (const [key, isRead] of [
    ["", false],
    ["lhk_1", false],
    ["cell 1", true],
  ] as const) {
    let pulled = false;
    const body = new ReadableStream<Uint8Array>(
      {
        pull: (controller) => {
          pulled = true;
          controller.enqueue(beginBytes());
          controller.close();
        },
      },
      { highWaterMark: 0 },
    );
    const headers = {
      "content-type": "application/proto",
      ...(key === "" ? {} : { authorization: `Bearer ${await keyOf(key)}` }),
    };
    const answer = await send(
      api,
      new Request(`${BASE}/${SERVICE}/BeginUpdate`, { method: "POST", headers, body }),
    );
    expect([answer.status, pulled]).toEqual([isRead ? 200 : 401, isRead]);
  }
});

test("answers have the headers that all answers have, and an id for the log", async () => {
  for (const answer of [await post({ body: beginBytes() }), await post({ key: "", body: beginBytes() })]) {
    expect(answer.headers.get("x-request-id")).toMatch(/^[\da-f-]{36}$/);
    expect(answer.headers.get("cache-control")).toBe("no-store");
    expect(answer.headers.get("x-content-type-options")).toBe("nosniff");
    await answer.arrayBuffer();
  }
});
