/** Page tokens are valid only for the listing that they were made for. */
import * as fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { routeIds, type RouteId } from "../../../src/coordinator/api/contract.ts";
import { sendAndCheck } from "./oracles.ts";
import { FuzzServer } from "./server.ts";
import { RESPELLED } from "./pools.ts";
import { fuzz, TEST_MS } from "./settings.ts";
import { flipped, routeOf, type FuzzRequest } from "./fuzz-request.ts";

interface Listing {
  id: RouteId;
  key: string;
  params: Record<string, string>;
  query: [string, string][];
}

/** The routes whose schema has page tokens. The listings below have more than one page. */
const paged = routeIds.filter(
  (id) => "page_token" in ((routeOf(id).query as { shape?: object }).shape ?? {}),
);

const RECORDS: [string, string][] = [["source_type", "RAILS_TABLE_USERS"]];
/** A name that has a claim and a past claim. */
const HISTORY = { bucket_type: "ROUTES", value: RESPELLED };
/** A subject with names in several cells. */
const SUBJECT: [string, string][] = [
  ["subject_type", "USER"],
  ["subject_id", "0"],
];
const listings: readonly Listing[] = [
  { id: "listLeases", key: "cell 1", params: { cell: "1" }, query: [] },
  { id: "listLeases", key: "operator", params: { cell: "1" }, query: [] },
  {
    id: "listLeases",
    key: "operator",
    params: { cell: "1" },
    query: [["created_after", "2020-01-01T00:00:00Z"]],
  },
  { id: "listLeases", key: "operator", params: { cell: "2" }, query: [] },
  { id: "listRecords", key: "cell 1", params: { cell: "1" }, query: RECORDS },
  { id: "listRecords", key: "operator", params: { cell: "1" }, query: RECORDS },
  {
    id: "listRecords",
    key: "operator",
    params: { cell: "1" },
    query: [...RECORDS, ["bucket_type", "ROUTES"]],
  },
  { id: "listRecords", key: "operator", params: { cell: "2" }, query: RECORDS },
  { id: "searchRecords", key: "operator", params: {}, query: SUBJECT },
  { id: "listFailedCopies", key: "operator", params: {}, query: [] },
  { id: "listCells", key: "operator", params: {}, query: [] },
  { id: "listKeys", key: "operator", params: {}, query: [] },
  { id: "listCredentialUses", key: "operator", params: {}, query: [] },
  { id: "listStaleLeases", key: "operator", params: {}, query: [["older_than_s", "0"]] },
  { id: "listAudit", key: "operator", params: {}, query: [] },
  { id: "listAudit", key: "operator", params: {}, query: [["action", "mint_key"]] },
  { id: "listTransfers", key: "operator", params: {}, query: [] },
  { id: "listTransfers", key: "cell 2", params: {}, query: [["from", "1"]] },
  { id: "listHistory", key: "operator", params: HISTORY, query: [] },
  { id: "listHistory", key: "operator", params: HISTORY, query: [["at", "2020-01-01T00:00:00Z"]] },
  { id: "listDeliveries", key: "operator", params: { id: "fz-id" }, query: [] },
];

/** The cron of the minute may copy the cells at any moment, but not this often. */
const TRIES = 5;

let server: FuzzServer;
/** Tokens of the listings that have a second page. */
const tokens: { from: Listing; token: string }[] = [];

const requestOf = ({ id, key, params, query }: Listing, more: [string, string][]): FuzzRequest => ({
  id,
  key,
  params,
  query: [...query, ...more],
  headers: [],
  notes: ["pages"],
});

beforeAll(async () => {
  server = await FuzzServer.start();
  for (const from of listings) {
    let token = "";
    for (let tries = 0; token === "" && tries < (from.id === "listFailedCopies" ? TRIES : 1); tries += 1) {
      if (from.id === "listFailedCopies") server.failCopies();
      const { text } = await sendAndCheck(server, requestOf(from, [["page_size", "1"]]));
      ({ next_page_token: token } = JSON.parse(text) as { next_page_token: string });
    }
    if (token !== "") tokens.push({ from, token });
  }
}, TEST_MS);

afterAll(() => server.stop());

test("every route with pages is tested, and has returned a token", () => {
  expect([...new Set(listings.map(({ id }) => id))].toSorted()).toEqual(paged.toSorted());
  const given = new Set<string>(tokens.map(({ from }) => from.id));
  expect(paged.filter((id) => !given.has(id))).toEqual([]);
});

const tamperings: fc.Arbitrary<{ note: string; of: (token: string) => string }> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc
      .nat(6 * 200)
      .map((bit) => ({ note: `bit ${bit} flipped`, of: (token: string) => flipped(token, bit) })),
  },
  {
    weight: 2,
    arbitrary: fc
      .integer({ min: 1, max: 60 })
      .map((cut) => ({ note: `${cut} cut off`, of: (token: string) => token.slice(0, -cut) })),
  },
  {
    weight: 2,
    arbitrary: fc
      .constantFrom("A", "=", "==", " ", "\u0000", "é", "%", ".", "\n")
      .map((more) => ({ note: JSON.stringify(more), of: (token: string) => token + more })),
  },
  fc.constantFrom(
    { note: "twice", of: (token: string) => token + token },
    { note: "reversed", of: (token: string) => [...token].toReversed().join("") },
    { note: "upper case", of: (token: string) => token.toUpperCase() },
    { note: "only the signature", of: (token: string) => token.slice(0, 43) },
    { note: "only the position", of: (token: string) => token.slice(43) },
    { note: "a key", of: () => server.keys.get("operator") ?? "" },
    { note: "very long", of: (token: string) => token.repeat(100) },
  ),
);

test(
  "a changed token is refused",
  async () => {
    await fuzz(80, fc.record({ which: fc.nat(99), tampering: tamperings }), async ({ which, tampering }) => {
      const { from, token } = tokens[which % tokens.length] ?? { from: listings[0], token: "" };
      const changed = tampering.of(token);
      // An empty token means the first page.
      if (from === undefined || changed === token || changed === "") return;
      const request = requestOf(from, [["page_token", changed]]);
      const received = await sendAndCheck(server, { ...request, must: 400, notes: [tampering.note] });
      expect(JSON.parse(received.text)).toMatchObject({ code: "INVALID_ARGUMENT", field: "page_token" });
    });
  },
  TEST_MS,
);

const same = (one: Listing, other: Listing): boolean => one === other;

test(
  "a token is valid for its own listing with any page size, and for no other",
  async () => {
    for (const { from, token } of tokens) {
      for (const to of listings) {
        const request = requestOf(to, [
          ["page_token", token],
          ["page_size", "5"],
        ]);
        const received = await sendAndCheck(server, same(from, to) ? request : { ...request, must: 400 });
        if (same(from, to)) expect(received.status).toBe(200);
        else expect(JSON.parse(received.text)).toMatchObject({ field: "page_token" });
      }
    }
  },
  TEST_MS,
);
