/** Bodies and addresses that no client of the wire should send. */
import { beforeAll, expect, test } from "vitest";
import { Api, env, keyOf, startDeployment } from "../../support/workerd/api.ts";
import { watchedNamespace } from "../../support/workerd/counting.ts";
import { encode, type Fields } from "./bytes.ts";
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
  const { code } = await answer.json<{ code: string }>();
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

/** What the error says, over each protocol. */
async function toldOf(sent: Sent & { body: Uint8Array }): Promise<string[]> {
  const web = (base: Uint8Array): Uint8Array => {
    const body = new Uint8Array(5 + base.length);
    new DataView(body.buffer).setUint32(1, base.length);
    body.set(base, 5);
    return body;
  };
  const base64 = btoa(String.fromCharCode(...sent.body));
  const inQuery = new URLSearchParams({ connect: "v1", encoding: "proto", base64: "1", message: base64 });
  const answers = [
    await post(sent),
    await post({ ...sent, type: "application/grpc-web+proto", body: web(sent.body) }),
    ...(sent.path === "GetRecord"
      ? [
          await send(
            api,
            new Request(`${BASE}/${SERVICE}/GetRecord?${inQuery.toString()}`, {
              headers: await authorized(),
            }),
          ),
        ]
      : []),
  ];
  return Promise.all(
    answers.map(async (answer) => {
      const text = await answer.text();
      if (answer.headers.get("content-type") !== "application/grpc-web+proto")
        return (JSON.parse(text) as { message: string }).message;
      expect(text).toMatch(/grpc-status: ?3\r\n/);
      return decodeURIComponent(/grpc-message: ?(.*)\r\n/.exec(text)?.[1] ?? "");
    }),
  );
}

const authorized = async () => ({ authorization: `Bearer ${await keyOf("cell 1")}` });

test("[W13] a binary message that cannot be read is refused by the field, over every protocol", async () => {
  const begun = (...records: Fields[]) => encode([...records.map((each) => [1, each] as const), [3, 1]]);
  const whole = encode([[1, [[5, [[1, "acme"]]]]]]);
  const long = Uint8Array.from([0x18, ...Array.from({ length: 10 }, () => 255), 1]);
  for (const [path, body, told] of [
    ["BeginUpdate", whole.slice(0, -2), "`create_records[0]` is cut: it has 8 bytes, of which 6 arrived"],
    [
      "BeginUpdate",
      begun([], [[5, [[6, "12"]]]]),
      "`create_records[1].claim.project_id` is sent as bytes, and must be a whole number",
    ],
    [
      "BeginUpdate",
      begun([[5, [[1, 12]]]]),
      "`create_records[0].claim.route` is sent as a number, and must be text",
    ],
    [
      "BeginUpdate",
      begun([[5, [[1, Uint8Array.from([255])]]]]),
      "`create_records[0].claim.route` is not UTF-8",
    ],
    [
      "BeginUpdate",
      begun([[2, 7]]),
      "`create_records[0].subject` is sent as a number, and must be a Subject",
    ],
    ["BeginUpdate", encode([[3, "1"]]), "`cell_id` is sent as bytes, and must be a whole number"],
    ["BeginUpdate", long, "`cell_id` is a number of more than 64 bits"],
    ["BeginUpdate", Uint8Array.from([0x1b]), "`cell_id` is cut or malformed"],
    ["BeginUpdate", Uint8Array.from([7]), "The message has bytes with which no field begins"],
    [
      "ListRecords",
      encode([
        [1, 1],
        [4, new Uint8Array(8)],
        [6, Uint8Array.from([4, 128])],
      ]),
      "`claim_types[0]` is cut or malformed",
    ],
    ["CommitUpdate", encode([[2, [[1, 5]]]]), "`lease_uuid.value` is sent as a number, and must be text"],
    ["GetRecord", encode([[2, [[4, 5]]]]), "`claim.username` is sent as a number, and must be text"],
  ] as const)
    for (const message of await toldOf({ path, body })) expect(message).toBe(`${told}.`);
});

test("[W13] a message in JSON that cannot be read is refused by the field", async () => {
  const long = "x".repeat(100);
  for (const [path, body, told] of [
    ["BeginUpdate", '{"cellId":"1","no_such_field":1}', "`no_such_field` is no field of the message"],
    ["BeginUpdate", `{"${long}":1}`, `\`${"x".repeat(64)}…\` is no field of the message`],
    ["BeginUpdate", '{"cellId":"one"}', "`cell_id` must be a whole number"],
    ["BeginUpdate", '{"createRecords":{}}', "`create_records` must be a list"],
    [
      "BeginUpdate",
      '{"createRecords":[{},{"claim":{"route":7}}]}',
      "`create_records[1].claim.route` must be text",
    ],
    [
      "BeginUpdate",
      '{"create_records":[{"subject":{"type":"NOBODY"}}]}',
      "`create_records[0].subject.type` must be a value of the enum Type",
    ],
    ["BeginUpdate", '{"createRecords":[{"claim":[]}]}', "`create_records[0].claim` must be an object"],
    [
      "BeginUpdate",
      '{"createRecords":[{"source":{"rails_primary_key_id":"?"}}]}',
      "`create_records[0].source.rails_primary_key_id` must be bytes",
    ],
    [
      "BeginUpdate",
      '{"createRecords":[{"claim":{"route":"a","email":"b"}}]}',
      "`create_records[0].claim` has two fields of which only one may be sent, or one of them twice",
    ],
    ["ListLeases", '{"createdAfter":"yesterday"}', "`created_after` must be a Timestamp"],
    ["ListLeases", '{"cellId":"1","cellId":"1"}', "The message has an object with a key that is there twice"],
    ["ListLeases", "[]", "The message must be an object"],
    ["ListLeases", "{", "The message is not JSON"],
  ] as const) {
    const answer = await post({ path, type: "application/json", body });
    const { code, message } = await answer.json<{ code: string; message: string }>();
    expect([answer.status, code, message]).toEqual([400, "invalid_argument", `${told}.`]);
  }
  for (const [query, told] of [
    ["encoding=json&message=%7B%22claim%22%3A1%7D", "`claim` must be an object"],
    ["encoding=proto&base64=1&message=*", "The message is not base64"],
  ]) {
    const request = new Request(`${BASE}/${SERVICE}/GetRecord?connect=v1&${query}`, {
      headers: await authorized(),
    });
    expect(await (await send(api, request)).json()).toMatchObject({
      code: "invalid_argument",
      message: `${told}.`,
    });
  }
});

test("[W4] a deadline that its protocol doesn't have is refused by the name of its header", async () => {
  const body = beginBytes();
  const web = {
    type: "application/grpc-web+proto",
    body: Uint8Array.from([0, 0, 0, 0, body.length, ...body]),
  };
  for (const sent of ["123456789m", "99999999H", "1", "m", "-1S", "1 S", "1S, 1S"]) {
    const text = await (await post({ ...web, headers: { "grpc-timeout": sent } })).text();
    expect(decodeURIComponent(text), sent).toMatch(/grpc-status: ?3\r\n/);
    expect(decodeURIComponent(text), sent).toContain("`grpc-timeout` must be ");
  }
  for (const type of ["application/proto", "application/json"])
    for (const sent of ["12345678901", "1S", "-1", "600001"]) {
      const answer = await post({
        type,
        body: type.endsWith("json") ? "{}" : body,
        headers: { "connect-timeout-ms": sent },
      });
      const { code, message } = await answer.json<{ code: string; message: string }>();
      expect([code, message], sent).toEqual([
        "invalid_argument",
        expect.stringContaining("`connect-timeout-ms` must be "),
      ]);
    }
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
