/** Requests that nobody makes by mistake. */
import * as fc from "fast-check";
import { gzipSync } from "node:zlib";
import type { RouteId } from "../../../src/http/contract.ts";
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
  validShots,
  type Shot,
} from "./shots.ts";
import { at, isObject, placesIn, textIn, textOf, withChange, type Tree } from "./tree.ts";

const bytesOf = (text: string): Buffer => Buffer.from(text);
const nested = (depth: number, open: string, middle: string, close: string): string =>
  open.repeat(depth) + middle + close.repeat(depth);

/** Bodies that are wrong whatever the route is. */
const WRONG_BODIES: Readonly<Record<string, Uint8Array>> = {
  "a byte order mark": bytesOf("\ufeff{}"),
  "UTF-16": Buffer.from("\ufeff{}", "utf16le"),
  "invalid UTF-8": Buffer.from([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x3a, 0x31, 0x7d]),
  "an overlong slash": Buffer.from([0x22, 0xc0, 0xaf, 0x22]),
  "a surrogate in UTF-8": Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22]),
  "half a character": Buffer.from([0x22, 0xf0, 0x9f, 0x98, 0x22]),
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
  "lists as deep as may be": bytesOf(nested(DEPTH_LIMIT, "[", "", "]")),
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

const withBody = (shot: Shot, note: string, bytes: Uint8Array, must?: number): Shot => ({
  ...shot,
  bytes,
  notes: [...shot.notes, `body: ${note}`],
  ...(must === undefined ? {} : { must }),
});

const wrongBody = (shot: Shot, note: string): Shot => {
  const bytes = WRONG_BODIES[note] ?? Buffer.alloc(0);
  return withBody(shot, note, bytes, 400);
};

/** Bytes that are no UTF-8, in the midst of a text that is otherwise good: read carelessly, they are some other text. */
const WRONG_BYTES = [
  [0xff],
  [0xc0, 0xaf],
  [0xed, 0xa0, 0x80],
  [0xf0, 0x9f, 0x98],
  [0xe9],
  [0x80],
  [0xf4, 0x90, 0x80, 0x80],
];

function withWrongBytes(shot: Shot, pick: number): Shot {
  const body = shot.body ?? null;
  const places = placesIn(body).filter((place) => typeof at(body, place) === "string");
  const place = places[pick % Math.max(1, places.length)];
  if (place === undefined) return wrongBody(shot, "invalid UTF-8");
  const mark = "here-they-are";
  const [before = "", behind = ""] = textOf(
    withChange(body, place, (text) => `${textIn(text)}${mark}`) ?? null,
  ).split(mark);
  const wrong = Buffer.from(pickFrom(WRONG_BYTES, pick));
  return withBody(
    shot,
    `no UTF-8 in ${JSON.stringify(place)}`,
    Buffer.concat([bytesOf(before), wrong, bytesOf(behind)]),
    400,
  );
}

/** Padded with blanks to `size` bytes, which changes nothing but the size. */
function padded(shot: Shot, size: number, must?: number): Shot {
  const bytes = bodyOf(shot) ?? bytesOf("{}");
  return withBody(
    shot,
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

function typed(shot: Shot, type: string, must?: number): Shot {
  const notes = [...shot.notes, `content type ${JSON.stringify(type)}`];
  return {
    ...shot,
    body: shot.body ?? {},
    headers: [...shot.headers, ["content-type", type]],
    notes,
    ...(must === undefined ? {} : { must }),
  };
}

function compressed(shot: Shot, encoding: string): Shot {
  const bytes = gzipSync(bodyOf(shot) ?? bytesOf("{}"));
  return {
    ...withBody(shot, `content encoding ${encoding}`, bytes, 415),
    headers: [...shot.headers, ["content-encoding", encoding]],
  };
}

/** Lists at their limit and over it, where the route has lists. */
function long(shot: Shot, over: boolean): Shot {
  if (!isObject(shot.body)) return shot;
  const names = Array.from({ length: BATCH_LIMIT + 1 }, (_, n) => `fzname-many-${n}`);
  const item = (value: string): Tree => ({
    bucket: { type: "ROUTES", value },
    subject: { type: "USER", id: 1 },
    source: { type: "RAILS_TABLE_USERS", id: 1 },
  });
  const notes = [...shot.notes, over ? "one item more than may be" : "as many items as may be"];
  const refusal = over ? { must: 400 } : {};
  if (shot.id === "lookupRecords") {
    const buckets = names
      .slice(0, LOOKUP_LIMIT + (over ? 1 : 0))
      .map((value): Tree => ({ type: "ROUTES", value }));
    return { ...shot, body: { buckets }, notes, ...refusal };
  }
  if (shot.id !== "beginLease" && shot.id !== "beginLeaseWithNewId") return shot;
  const all = names.slice(0, BATCH_LIMIT + (over ? 1 : 0)).map(item);
  // Of names that nobody has, so that only the last of them is granted or not.
  return { ...shot, body: { creates: all.slice(0, 10), destroys: all.slice(10) }, notes, ...refusal };
}

/** Text that looks like other text, is longer than it looks, or is read by somebody as more than text. */
const TEXTS = [
  "\u202efzname-0",
  "fzname\u200b-0",
  "fzname-\u0430",
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

/** Any text anywhere in the request. */
function withText(shot: Shot, where: number, text: string): Shot {
  const places =
    shot.body === undefined
      ? []
      : placesIn(shot.body).filter((place) => typeof at(shot.body ?? null, place) === "string");
  const params = Object.keys(shot.params);
  const slots = places.length + params.length + shot.query.length;
  const slot = slots === 0 ? 0 : where % slots;
  const notes = [...shot.notes, `text ${JSON.stringify(text.slice(0, 40))}`];
  const place = places[slot];
  if (place !== undefined) return { ...shot, body: withChange(shot.body ?? null, place, () => text), notes };
  const param = params[slot - places.length];
  if (param !== undefined) return { ...shot, params: { ...shot.params, [param]: text }, notes };
  const query = shot.query.map(([name, value], index): [string, string] => [
    name,
    index === slot - places.length - params.length ? text : value,
  ]);
  return { ...shot, query, notes };
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

/** Ways to send an Authorization that are no key, or more than one. */
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

/** One of the ways above. `pick` chooses within it. */
type Hostility = (shot: Shot, pick: number) => Shot;

const pickFrom = <T>(list: readonly [T, ...T[]] | readonly T[], pick: number): T => {
  const item = list[pick % list.length];
  if (item === undefined) throw new Error("an empty list");
  return item;
};

const hostilities: readonly { weight: number; apply: Hostility; isFor?: (id: RouteId) => boolean }[] = [
  { weight: 6, apply: (shot, pick) => wrongBody(shot, pickFrom(Object.keys(WRONG_BODIES), pick)) },
  {
    weight: 6,
    apply: (shot, pick) => withText(shot, Math.floor(pick / TEXTS.length), pickFrom(TEXTS, pick)),
  },
  { weight: 2, apply: withWrongBytes, isFor: (id) => routeOf(id).body !== undefined },
  { weight: 2, apply: (shot, pick) => typed(shot, pickFrom(TYPES, pick), 415) },
  { weight: 1, apply: (shot, pick) => typed(shot, pickFrom(GOOD_TYPES, pick)) },
  { weight: 2, apply: (shot, pick) => compressed(shot, pickFrom(ENCODINGS, pick)) },
  { weight: 1, apply: (shot) => padded(shot, BODY_LIMIT) },
  { weight: 1, apply: (shot, pick) => padded(shot, BODY_LIMIT + 1 + (pick % 3) * 1_000_000, 413) },
  {
    weight: 2,
    apply: (shot, pick) => long(shot, pick % 2 === 0),
    isFor: (id) => routeOf(id).body?.required === true,
  },
  {
    weight: 3,
    apply: (shot, pick) => ({
      ...shot,
      rawParams: {
        ...rawOf(shot),
        [pickFrom(Object.keys(shot.params), pick >> 5)]: pickFrom(RAW_PARAMS, pick),
      },
      notes: ["raw path"],
    }),
    isFor: (id) => routeOf(id).path.includes("{"),
  },
  {
    weight: 3,
    apply: (shot, pick) => ({ ...shot, rawQuery: pickFrom(RAW_QUERIES, pick), notes: ["raw query"] }),
  },
  {
    weight: 2,
    apply: (shot, pick) => ({ ...shot, flip: pick, notes: ["a bit of the key flipped"] }),
    isFor: needsKey,
  },
  {
    weight: 3,
    apply: (shot, pick) => ({
      ...shot,
      key: pickFrom([...badKeys, ...goodKeys, ...orphanKeys], pick),
      notes: ["another key"],
    }),
  },
  {
    weight: 1,
    apply: (shot, pick) => ({
      ...shot,
      headers: [["authorization", pickFrom(AUTHORIZATIONS, pick)]],
      notes: ["an odd Authorization"],
      must: 401,
    }),
    isFor: needsKey,
  },
];

function needsKey(id: RouteId): boolean {
  return routeOf(id).roles !== "anyone";
}

const rawOf = ({ params }: Shot): Record<string, string> =>
  Object.fromEntries(
    Object.entries(params).map(([name, value]) => [name, encodeURIComponent(value.toWellFormed())]),
  );

export function hostileShots(id: RouteId): fc.Arbitrary<Shot> {
  const ways = hostilities.filter(({ isFor }) => isFor?.(id) ?? true);
  const applied = ways.map(({ weight, apply }) => ({
    weight,
    arbitrary: fc.tuple(validShots(id), fc.nat(10_000)).map(([shot, pick]) => ruled(apply(shot, pick))),
  }));
  return fc.oneof(...applied);
}

/** Who may not call is told so before anything else is looked at. */
function ruled(shot: Shot): Shot {
  const { must, ...rest } = shot;
  if (must === undefined || (must !== 401 && keyFault(rest) !== undefined)) return rest;
  return shot;
}
