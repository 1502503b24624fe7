/** Bytes of older generations of clients, made and read without our schemas. */
import { v4 as newUuid } from "uuid";
import { beforeAll, expect, test } from "vitest";
import { applied, freshName } from "../../suites/conformance/leases.ts";
import { keyOf, startDeployment, type Api } from "../../support/workerd/api.ts";
import { at, decode, encode, type Fields } from "./bytes.ts";
import { BASE, send, SERVICE } from "./clients.ts";

let api: Api;

beforeAll(async () => {
  api = await startDeployment("1");
});

const ROUTES = 1;
const ROUTES_TABLE = 3;
const text = (bytes: bigint | Uint8Array | undefined): string =>
  bytes instanceof Uint8Array ? new TextDecoder().decode(bytes) : String(bytes);

async function call(method: string, fields: Fields): Promise<Uint8Array> {
  const answer = await send(
    api,
    new Request(`${BASE}/${SERVICE}/${method}`, {
      method: "POST",
      headers: { authorization: `Bearer ${await keyOf("cell 1")}`, "content-type": "application/proto" },
      body: encode(fields) as Uint8Array<ArrayBuffer>,
    }),
  );
  const bytes = new Uint8Array(await answer.arrayBuffer());
  expect(answer.status, text(bytes)).toBe(200);
  return bytes;
}

const source = (id: number | Uint8Array): Fields => [
  [1, ROUTES_TABLE],
  [2, id],
];
const subject: Fields = [
  [1, 2],
  [2, 7],
];
/** Metadata with a bucket, as all but the newest generations send it. */
const withBucket = (value: string, id: number | Uint8Array): Fields => [
  [
    1,
    [
      [1, ROUTES],
      [2, value],
    ],
  ],
  [2, subject],
  [3, source(id)],
];
const withClaim = (value: string, id: Uint8Array, more: Fields = []): Fields => [
  [2, subject],
  [3, source(id)],
  [5, [[1, value]]],
  ...more,
];
const lease = (uuid: string): Fields => [
  [1, 1],
  [2, [[1, uuid]]],
];
const integer = (id: number): Uint8Array => {
  const bytes = new Uint8Array(8);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(id));
  return bytes;
};

async function own(metadata: Fields, value: string): Promise<void> {
  const begun = await call("BeginUpdate", [
    [1, metadata],
    [3, 1],
  ]);
  expect(at(begun, 1)).toBe(1n);
  expect(await call("CommitUpdate", lease(text(at(begun, 2, 1))))).toEqual(new Uint8Array());
  await applied(api, value);
}

test("[W2] the oldest generation: buckets, whole numbers as ids of sources, and pages", async () => {
  const names = [freshName(), freshName(), freshName()];
  for (const [index, name] of names.entries()) await own(withBucket(name, 1_000 + index), name);
  const seen: string[] = [];
  let next: Uint8Array | undefined;
  for (let page = 0; page < 3; page += 1) {
    const answer = await call("ListRecords", [
      [1, 1],
      [2, ROUTES_TABLE],
      ...(next === undefined ? [] : ([[3, next]] as const)),
      [4, 1],
    ]);
    expect(at(answer, 1, 2, 2, 1)).toBe(2n);
    expect(at(answer, 1, 2, 3, 2)).toBe(BigInt(1_000 + page));
    expect(at(answer, 1, 2, 5)).toBeUndefined();
    expect(at(answer, 1, 4)).toBe(1n);
    seen.push(text(at(answer, 1, 2, 1, 2)));
    const found = at(answer, 2);
    next = found instanceof Uint8Array ? found : undefined;
    if (next === undefined) break;
  }
  expect(seen).toEqual(names);
  // Without a page size and a page, nothing but the cell and the table is sent.
  const whole = await call("ListRecords", [
    [1, 1],
    [2, ROUTES_TABLE],
  ]);
  expect(decode(whole).filter(([no]) => no === 1).length).toBeGreaterThanOrEqual(3);

  const [name = ""] = names;
  const got = await call("GetRecord", [
    [
      1,
      [
        [1, ROUTES],
        [2, name],
      ],
    ],
  ]);
  expect(text(at(got, 1, 2, 1, 2))).toBe(name);
  const begun = await call("BeginUpdate", [
    [2, withBucket(name, 1_000)],
    [3, 1],
  ]);
  await call("RollbackUpdate", lease(text(at(begun, 2, 1))));
});

test("[W2] the second generation: buckets, bytes as ids of sources, and ranges of them", async () => {
  const name = freshName();
  await own(withBucket(name, integer(2_000)), name);
  const answer = await call("ListRecords", [
    [1, 1],
    [2, ROUTES_TABLE],
    [3, Uint8Array.from([ROUTES])],
    [4, integer(1_999)],
    [5, integer(2_000)],
  ]);
  expect(text(at(answer, 1, 2, 1, 2))).toBe(name);
  expect(at(answer, 1, 2, 3, 2)).toEqual(integer(2_000));
  expect(at(answer, 2)).toBeUndefined();
});

test("[W2] the third generation: a bucket and a claim of the same name", async () => {
  const name = freshName();
  const both = [...withBucket(name, integer(2_500)), [5, [[1, name]]]] as const;
  await own(both, name);
  const other = await send(
    api,
    new Request(`${BASE}/${SERVICE}/BeginUpdate`, {
      method: "POST",
      headers: { authorization: `Bearer ${await keyOf("cell 1")}`, "content-type": "application/proto" },
      body: encode([
        [1, [...withBucket(freshName(), integer(2_501)), [5, [[1, freshName()]]]]],
        [3, 1],
      ]) as Uint8Array<ArrayBuffer>,
    }),
  );
  expect([other.status, await other.text()]).toEqual([
    400,
    expect.stringContaining("`create_records[0].bucket`"),
  ]);
});

test("[W2] [W7] the newest generation: claims, and UUIDs and texts as ids of sources", async () => {
  const uuid = newUuid();
  const bytes = Uint8Array.from(uuid.replaceAll("-", "").match(/../g) ?? [], (digits) =>
    parseInt(digits, 16),
  );
  const ids: [number, Uint8Array][] = [
    [3_000, integer(3_000)],
    [0, bytes],
    [0, new TextEncoder().encode("a-text-id")],
  ];
  for (const [, id] of ids) {
    const name = freshName();
    const begun = await call("BeginUpdate", [
      [1, withClaim(name, id, [[4, [[1, "type.googleapis.com/x"]]]])],
      [3, 1],
      [4, 77],
      [999, "of a later generation"],
    ]);
    await call("CommitUpdate", lease(text(at(begun, 2, 1))));
    await applied(api, name);
    const answer = await call("GetRecord", [[2, [[1, name]]]]);
    expect(text(at(answer, 1, 2, 5, 1))).toBe(name);
    expect(at(answer, 1, 2, 3, 2)).toEqual(id);
    expect(at(answer, 1, 2, 1)).toBeUndefined();
  }
});

test("[W7] a type of claim that the deployment does not have is refused by its number", async () => {
  for (const [no, value] of [
    [199, "of a later generation"],
    [201, 5],
  ] as const) {
    const answer = await send(
      api,
      new Request(`${BASE}/${SERVICE}/GetRecord`, {
        method: "POST",
        headers: { authorization: `Bearer ${await keyOf("cell 1")}`, "content-type": "application/proto" },
        body: encode([[2, [[no, value]]]]) as Uint8Array<ArrayBuffer>,
      }),
    );
    const { code, message } = await answer.json<{ code: string; message: string }>();
    expect(code).toBe("invalid_argument");
    expect(message).toContain(`the bucket type ${no}, which is not declared`);
  }
});

test("[W7] a claim of a later generation that is no text is refused", async () => {
  const answer = await send(
    api,
    new Request(`${BASE}/${SERVICE}/GetRecord`, {
      method: "POST",
      headers: { authorization: `Bearer ${await keyOf("cell 1")}`, "content-type": "application/proto" },
      body: encode([[2, [[200, Uint8Array.from([255, 254])]]]]) as Uint8Array<ArrayBuffer>,
    }),
  );
  expect([answer.status, await answer.text()]).toEqual([400, expect.stringContaining("invalid_argument")]);
});
