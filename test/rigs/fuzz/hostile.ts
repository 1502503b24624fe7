/** Hostile requests. */
import * as fc from "fast-check";
import { gzipSync } from "node:zlib";
import type { RouteId } from "../../../src/coordinator/api/contract.ts";
import { REGISTERED } from "./pools.ts";
import { badKeys, goodKeys, orphanKeys } from "./server.ts";
import {
  ABSENT,
  BATCH_LIMIT,
  BODY_LIMIT,
  bodyOf,
  DEPTH_LIMIT,
  keyFault,
  LOOKUP_LIMIT,
  routeOf,
  validRequests,
  type FuzzRequest,
} from "./fuzz-request.ts";
import { at, isObject, pathsIn, textIn, textOf, withChange, type Tree } from "./tree.ts";

const bytesOf = (text: string): Buffer => Buffer.from(text);
const nested = (depth: number, open: string, middle: string, close: string): string =>
  open.repeat(depth) + middle + close.repeat(depth);

/** Bodies that are invalid for every route. */
const WRONG_BODIES: Readonly<Record<string, Uint8Array>> = {
  "a byte order mark": bytesOf("\ufeff{}"),
  "UTF-16": Buffer.from("\ufeff{}", "utf16le"),
  "invalid UTF-8": Buffer.from([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x3a, 0x31, 0x7d]),
  "an overlong slash": Buffer.from([0x22, 0xc0, 0xaf, 0x22]),
  "a surrogate in UTF-8": Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22]),
  "an incomplete character": Buffer.from([0x22, 0xf0, 0x9f, 0x98, 0x22]),
  NULs: Buffer.alloc(64),
  "blanks only": bytesOf(" \n\t "),
  "a form feed": bytesOf("\f{}"),
  "a space that JSON does not know": bytesOf("\u00a0{}"),
  "two documents": bytesOf("{}{}"),
  "two lines": bytesOf("{}\n{}"),
  "a comment": bytesOf("{/**/}"),
  "a comma too many": bytesOf('{"x":1,}'),
  "single quotes": bytesOf("{'x':1}"),
  "no quotes": bytesOf("{x:1}"),
  NaN: bytesOf('{"x":NaN}'),
  "cut short": bytesOf('{"x":"'),
  "a bare word": bytesOf("undefined"),
  "a number": bytesOf("1e400"),
  "a string": bytesOf('"x"'),
  null: bytesOf("null"),
  "a list": bytesOf("[]"),
  "a raw line feed in a string": bytesOf('{"x":"a\nb"}'),
  "a bad escape": bytesOf('{"\\x":1}'),
  __proto__: bytesOf('{"__proto__":{"reason":"x","role":"operator","creates":[]}}'),
  "__proto__, escaped": bytesOf('{"\\u005f_proto__":null}'),
  "__proto__ below": bytesOf('{"creates":[{"__proto__":{"bucket":1}}]}'),
  "constructor.prototype": bytesOf('{"constructor":{"prototype":{"role":"operator"}}}'),
  "a key twice, escaped": bytesOf('{"reason":"a","\\u0072eason":"b"}'),
  "a key of nothing, twice": bytesOf('{"":1,"":2}'),
  "a key twice, far apart": bytesOf(`{"reason":"a","x":${JSON.stringify("y".repeat(9_000))},"reason":"b"}`),
  "lists too deep": bytesOf(nested(DEPTH_LIMIT + 1, "[", "", "]")),
  "objects too deep": bytesOf(nested(DEPTH_LIMIT + 1, '{"x":', "1", "}")),
  "lists as deep as allowed": bytesOf(nested(DEPTH_LIMIT, "[", "", "]")),
  "100,000 lists": bytesOf(nested(100_000, "[", "", "]")),
  "100,000 lists without an end": bytesOf("[".repeat(100_000)),
  "100,000 objects": bytesOf(nested(100_000, '{"x":', "1", "}")),
  "100,000 fields": bytesOf(`{${Array.from({ length: 100_000 }, (_, n) => `"${n}":1`).join(",")}}`),
  "100,000 quotes": bytesOf('"'.repeat(100_000)),
  "100,000 digits": bytesOf(`{"x":${"9".repeat(100_000)}}`),
  "one long key": bytesOf(`{"${"k".repeat(500_000)}":1}`),
  "a long key of half characters": bytesOf(`{"${"\\ud83d".repeat(200)}":1}`),
  "a key that is cut between two halves": bytesOf(`{"${"k".repeat(63)}😀😀":1}`),
};

const withBody = (request: FuzzRequest, note: string, bytes: Uint8Array, must?: number): FuzzRequest => ({
  ...request,
  bytes,
  notes: [...request.notes, `body: ${note}`],
  ...(must === undefined ? {} : { must }),
});

const wrongBody = (request: FuzzRequest, note: string): FuzzRequest => {
  const bytes = WRONG_BODIES[note] ?? Buffer.alloc(0);
  return withBody(request, note, bytes, 400);
};

/** Invalid UTF-8 inside a valid text. A careless decoder would read another text. */
const WRONG_BYTES = [
  [0xff],
  [0xc0, 0xaf],
  [0xed, 0xa0, 0x80],
  [0xf0, 0x9f, 0x98],
  [0xe9],
  [0x80],
  [0xf4, 0x90, 0x80, 0x80],
];

function withWrongBytes(request: FuzzRequest, pick: number): FuzzRequest {
  const body = request.body ?? null;
  const paths = pathsIn(body).filter((path) => typeof at(body, path) === "string");
  const path = paths[pick % Math.max(1, paths.length)];
  if (path === undefined) return wrongBody(request, "invalid UTF-8");
  const mark = "insert-here";
  const [before = "", after = ""] = textOf(
    withChange(body, path, (text) => `${textIn(text)}${mark}`) ?? null,
  ).split(mark);
  const wrong = Buffer.from(pickFrom(WRONG_BYTES, pick));
  return withBody(
    request,
    `invalid UTF-8 in ${JSON.stringify(path)}`,
    Buffer.concat([bytesOf(before), wrong, bytesOf(after)]),
    400,
  );
}

/** Pads the body with blanks to `size` bytes, which changes only its size. */
function padded(request: FuzzRequest, size: number, must?: number): FuzzRequest {
  const bytes = bodyOf(request) ?? bytesOf("{}");
  return withBody(
    request,
    `padded to ${size} bytes`,
    Buffer.concat([bytes, Buffer.alloc(Math.max(0, size - bytes.length), " ")]),
    must,
  );
}

const TYPES = [
  ABSENT,
  "",
  "text/plain",
  "application/json-patch+json",
  "application/problem+json",
  "application/json; charset=utf-16",
  "application/json; charset=latin1",
  "application/json;charset=utf-8;charset=utf-16",
  "application/json, text/plain",
  "application/x-www-form-urlencoded",
  "multipart/form-data; boundary=x",
  `application/json${" ".repeat(5_000)}x`,
];
const GOOD_TYPES = ["APPLICATION/JSON", 'application/json; charset="UTF-8"', "application/json;"];
const ENCODINGS = ["gzip", "br", "deflate", "zstd", "identity, gzip", "x", "gzip, identity"];

function typed(request: FuzzRequest, type: string, must?: number): FuzzRequest {
  const notes = [...request.notes, `content type ${JSON.stringify(type)}`];
  return {
    ...request,
    body: request.body ?? {},
    headers: [...request.headers, ["content-type", type]],
    notes,
    ...(must === undefined ? {} : { must }),
  };
}

function compressed(request: FuzzRequest, encoding: string): FuzzRequest {
  const bytes = gzipSync(bodyOf(request) ?? bytesOf("{}"));
  return {
    ...withBody(request, `content encoding ${encoding}`, bytes, 415),
    headers: [...request.headers, ["content-encoding", encoding]],
  };
}

/** Lists at their limit or one over it, where the route has lists. */
function long(request: FuzzRequest, over: boolean): FuzzRequest {
  if (!isObject(request.body)) return request;
  const names = Array.from({ length: BATCH_LIMIT + 1 }, (_, n) => `fzname-many-${n}`);
  const item = (value: string): Tree => ({
    bucket: { type: "ROUTES", value },
    subject: { type: "USER", id: 1 },
    source: { type: "RAILS_TABLE_USERS", id: 1 },
  });
  const notes = [...request.notes, over ? "one item over the limit" : "as many items as allowed"];
  const refusal = over ? { must: 400 } : {};
  const lookup = { lookupRecords: "buckets", lookupRoutes: "names", classify: "claims" }[
    request.id as string
  ];
  if (lookup !== undefined) {
    const buckets = names
      .slice(0, LOOKUP_LIMIT + (over ? 1 : 0))
      .map((value): Tree => ({ type: "ROUTES", value }));
    return { ...request, body: { [lookup]: buckets }, notes, ...refusal };
  }
  if (request.id !== "beginLease" && request.id !== "beginLeaseWithNewId") return request;
  const all = names.slice(0, BATCH_LIMIT + (over ? 1 : 0)).map(item);
  // Names that no cell has, so that no other batch is affected.
  const body = { creates: all.slice(0, 10), destroys: all.slice(10) };
  // Each list has few enough items. All lists are counted after it is known whether the cell is registered.
  const isCounted = REGISTERED.includes(request.params["cell"] ?? "");
  return { ...request, body, notes, ...(isCounted ? refusal : {}) };
}

/**
 * Text that looks like other text, gets longer in its canonical form, or means something to another program.
 */
const TEXTS = [
  "\u202efzname-0",
  "fzname\u200b-0",
  "fzname-\u0430",
  "fzname-0\u2800",
  "fzname\u2044x",
  " fzname-0",
  "fzname-0\u0301",
  "ﬀzname",
  "\ufdfa".repeat(57),
  "\ufdfa".repeat(341),
  "a\u0301".repeat(500),
  "😀".repeat(256),
  "😀".repeat(257),
  "x".repeat(1_024),
  "x".repeat(1_025),
  "x".repeat(129),
  "é".repeat(64),
  "\ud800",
  "\udfff\ud800",
  "\u0000",
  "\u001b[2J",
  "\r\nset-cookie: x=1",
  "\uffff",
  "\u{10ffff}",
  "İ",
  "ß",
  "ſ",
  "K",
  "..",
  ".",
  "/",
  "//",
  "a//b",
  "../../admin/keys",
  "%2e%2e%2f",
  "%00",
  "%",
  "'; DROP TABLE claim; --",
  '"}]}',
  "${jndi:ldap://x}",
  "{{7*7}}",
  "<script>alert(1)</script>",
  "__proto__",
  "constructor",
  "null",
  "undefined",
  "9007199254740993",
  "1e3",
  "-0",
  "٣",
];

/** Puts a text anywhere into the request. */
function withText(request: FuzzRequest, where: number, text: string): FuzzRequest {
  const paths =
    request.body === undefined
      ? []
      : pathsIn(request.body).filter((path) => typeof at(request.body ?? null, path) === "string");
  const params = Object.keys(request.params);
  const targetCount = paths.length + params.length + request.query.length;
  const target = targetCount === 0 ? 0 : where % targetCount;
  const notes = [...request.notes, `text ${JSON.stringify(text.slice(0, 40))}`];
  const path = paths[target];
  if (path !== undefined)
    return { ...request, body: withChange(request.body ?? null, path, () => text), notes };
  const param = params[target - paths.length];
  if (param !== undefined) return { ...request, params: { ...request.params, [param]: text }, notes };
  const query = request.query.map(([name, value], index): [string, string] => [
    name,
    index === target - paths.length - params.length ? text : value,
  ]);
  return { ...request, query, notes };
}

const RAW_PARAMS = [
  "%",
  "%zz",
  "%ff",
  "%c0%af",
  "%e0%80%af",
  "%ed%a0%80",
  "%00",
  "%0d%0a",
  "%2f",
  "%252f",
  "%2e%2e%2f%2e%2e%2fadmin",
  "%u0041",
  "1%20",
  "%31",
  "1;x=1",
  "1:2",
  "*",
  "{cell}",
  "%7Bcell%7D",
  "x".repeat(3_000),
  "%F0%9F%98%80".repeat(300),
];

const RAW_QUERIES = [
  "%",
  "=",
  "&&&",
  "=1",
  "=1&=2",
  "%ff=1",
  "=%ff",
  "page_size=%ff",
  "page_size[]=1",
  "page_size%00=1",
  "page_size=1&page_size=1",
  "page_size=1;page_token=x",
  "__proto__=1",
  "__proto__[x]=1",
  "constructor[prototype][x]=1",
  "page_token=%00",
  `page_token=${"A".repeat(5_000)}`,
  `page_token=${"A".repeat(44)}`,
  `${"x".repeat(63)}%F0%9F%98%80=1&${"x".repeat(63)}%F0%9F%98%80=2`,
  `${"x".repeat(63)}%F0%9F%98%80=%ff`,
  Array.from({ length: 1_000 }, () => "bucket_type=ROUTES").join("&"),
  Array.from({ length: 1_000 }, (_, n) => `x${n}=1`).join("&"),
  "page_size=99999999999999999999",
  "page_size=1e1",
  "page_size=%D9%A3",
  "min_position=3:1,3:1",
  "min_position=3%3A1%2C",
  `min_position=${Array.from({ length: 2_000 }, (_, n) => `${n}:1`).join(",")}`,
  "after=9007199254740993",
  "after=-0",
  "older_than_s=999999999999",
  "created_after=0000-01-01T00:00:00Z",
  "created_after=9999-12-31T23:59:59.999999999-23:59",
  "created_after=2026-02-30T00:00:00Z",
  "created_after=2026-01-01T24:00:00Z",
  "created_after=2026-12-31T23:59:60Z",
  "created_after=2026-01-01t00:00z",
  "#fragment",
  "x=http://evil.example/v1/cells/2/leases?a=b",
];

const RAW_IDS = ["a.b.c", "lhk_.", "lhk_e30.e30", "lhk_", "Bearer", "\u00e9"];

/** Authorization headers that contain no key, or not exactly one. */
const AUTHORIZATIONS = [
  "Bearer",
  "Bearer ",
  "Basic b3BlcmF0b3I6eA==",
  "bearer null",
  "Bearer undefined",
  `Bearer ${"A".repeat(5_000)}`,
  `Bearer lhk_${"A".repeat(900)}.${"A".repeat(43)}`,
  ...RAW_IDS.map((id) => `Bearer ${id}`),
];

/** A hostile change of a request. `pick` chooses a variant. */
type Hostility = (request: FuzzRequest, pick: number) => FuzzRequest;

const pickFrom = <T>(list: readonly [T, ...T[]] | readonly T[], pick: number): T => {
  const item = list[pick % list.length];
  if (item === undefined) throw new Error("an empty list");
  return item;
};

const hostilities: readonly { weight: number; apply: Hostility; isFor?: (id: RouteId) => boolean }[] = [
  { weight: 6, apply: (request, pick) => wrongBody(request, pickFrom(Object.keys(WRONG_BODIES), pick)) },
  {
    weight: 6,
    apply: (request, pick) => withText(request, Math.floor(pick / TEXTS.length), pickFrom(TEXTS, pick)),
  },
  { weight: 2, apply: withWrongBytes, isFor: (id) => routeOf(id).body !== undefined },
  { weight: 2, apply: (request, pick) => typed(request, pickFrom(TYPES, pick), 415) },
  { weight: 1, apply: (request, pick) => typed(request, pickFrom(GOOD_TYPES, pick)) },
  { weight: 2, apply: (request, pick) => compressed(request, pickFrom(ENCODINGS, pick)) },
  { weight: 1, apply: (request) => padded(request, BODY_LIMIT) },
  { weight: 1, apply: (request, pick) => padded(request, BODY_LIMIT + 1 + (pick % 3) * 1_000_000, 413) },
  {
    weight: 2,
    apply: (request, pick) => long(request, pick % 2 === 0),
    isFor: (id) => routeOf(id).body?.required === true,
  },
  {
    weight: 3,
    apply: (request, pick) => ({
      ...request,
      rawParams: {
        ...rawOf(request),
        [pickFrom(Object.keys(request.params), pick >> 5)]: pickFrom(RAW_PARAMS, pick),
      },
      notes: ["raw path"],
    }),
    isFor: (id) => routeOf(id).path.includes("{"),
  },
  {
    weight: 3,
    apply: (request, pick) => ({ ...request, rawQuery: pickFrom(RAW_QUERIES, pick), notes: ["raw query"] }),
  },
  {
    weight: 2,
    apply: (request, pick) => ({ ...request, flip: pick, notes: ["a bit of the key flipped"] }),
    isFor: needsKey,
  },
  {
    weight: 3,
    apply: (request, pick) => ({
      ...request,
      key: pickFrom([...badKeys, ...goodKeys, ...orphanKeys], pick),
      notes: ["another key"],
    }),
  },
  {
    weight: 1,
    apply: (request, pick) => ({
      ...request,
      headers: [["authorization", pickFrom(AUTHORIZATIONS, pick)]],
      notes: ["an unusual Authorization"],
      must: 401,
    }),
    isFor: needsKey,
  },
];

function needsKey(id: RouteId): boolean {
  return routeOf(id).roles !== "anyone";
}

const rawOf = ({ params }: FuzzRequest): Record<string, string> =>
  Object.fromEntries(
    Object.entries(params).map(([name, value]) => [name, encodeURIComponent(value.toWellFormed())]),
  );

/** Hostile requests of any kind that the route has, or of one of them, in turn. */
export function hostileRequests(id: RouteId, nth?: number): fc.Arbitrary<FuzzRequest> {
  const all = hostilities.filter(({ isFor }) => isFor?.(id) ?? true);
  const ways = nth === undefined ? all : all.filter((_, index) => index === nth % all.length);
  const applied = ways.map(({ weight, apply }) => ({
    weight,
    arbitrary: fc
      .tuple(validRequests(id), fc.nat(10_000))
      .map(([request, pick]) => ruled(apply(request, pick))),
  }));
  return fc.oneof(...applied);
}

/** A caller that may not make the request is refused before anything else is checked. */
function ruled(request: FuzzRequest): FuzzRequest {
  const { must, ...rest } = request;
  if (must === undefined || (must !== 401 && keyFault(rest) !== undefined)) return rest;
  return request;
}
