/**
 * Requests without a key, and with every kind of invalid key. Every route refuses them, with the same answer
 * whether the thing exists or not.
 */
import * as fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { routeIds, type RouteId } from "../../../src/coordinator/api/contract.ts";
import { inSlice } from "../../support/slice.ts";
import { sendAndCheck } from "./oracles.ts";
import { names, uuid } from "./pools.ts";
import { badKeys, FuzzServer, goodKeys, orphanKeys } from "./server.ts";
import { fuzz, TEST_MS } from "./settings.ts";
import { keyFault, routeOf, validRequests, type FuzzRequest } from "./fuzz-request.ts";

let server: FuzzServer;

beforeAll(async () => {
  server = await FuzzServer.start();
}, TEST_MS);

afterAll(() => server.stop());

const guarded = routeIds.filter((id) => routeOf(id).roles !== "anyone");

/** For each parameter, a value that exists and one that does not. */
const THERE: Record<string, string> = {
  cell: "1",
  uuid: uuid(10),
  id: "1",
  bucket_type: "ROUTES",
  value: names[0] ?? "",
  part: "shard-0",
  operation: uuid(10),
  shard: "0",
};
const NOT_THERE: Record<string, string> = {
  cell: "78",
  uuid: uuid(99),
  id: "nobody",
  bucket_type: "ROUTES",
  value: "fzname-nobody",
  part: "shard-250",
  operation: uuid(99),
  shard: "250",
};

/** A valid request of each route. */
const examples = new Map(guarded.map((id) => [id, fc.sample(validRequests(id), { numRuns: 1, seed: 1 })[0]]));

/** The same request about other things. */
function aboutThings(id: RouteId, key: string, things: Record<string, string>): FuzzRequest {
  const request = examples.get(id);
  if (request === undefined) throw new Error("no example");
  const params = Object.fromEntries(Object.keys(request.params).map((name) => [name, things[name] ?? ""]));
  return { ...request, key, params, notes: ["auth"] };
}

const withoutId = (text: string): unknown => ({ ...(JSON.parse(text) as object), request_id: "" });

/** Keys and routes go through the same code, so each route meets a few of the keys. */
const PARTS_OF_KEYS = 4;
const keys = [...badKeys, ...goodKeys, ...orphanKeys];

test.each(guarded)(
  "%s refuses every key that may not use it, and does not reveal what exists",
  async (id) => {
    const from = guarded.indexOf(id) % keys.length;
    for (const key of inSlice([...keys.slice(from), ...keys.slice(0, from)], PARTS_OF_KEYS)) {
      const there = aboutThings(id, key, THERE);
      const absent = aboutThings(id, key, NOT_THERE);
      // Revocation is checked after everything else, and a key that may make the request is skipped.
      if (keyFault(there) === undefined || keyFault(absent) === undefined) continue;
      const [one, other] = [await sendAndCheck(server, there), await sendAndCheck(server, absent)];
      expect(one.status, key).toBe(other.status);
      expect(withoutId(one.text), key).toEqual(withoutId(other.text));
    }
  },
  TEST_MS,
);

test(
  "a key with one changed bit is refused",
  async () => {
    const requests = fc.record({
      id: fc.constantFrom(...guarded),
      key: fc.constantFrom(...goodKeys, ...orphanKeys),
      flip: fc.nat(6 * 300),
    });
    await fuzz(60, requests, async ({ id, key, flip }) => {
      expect((await sendAndCheck(server, { ...aboutThings(id, key, THERE), flip })).status).toBe(401);
    });
  },
  TEST_MS,
);

test(
  "a revoked key is refused on every route, and does not reveal what exists",
  async () => {
    for (const id of guarded) {
      for (const key of ["revoked operator", "revoked cell 1"]) {
        const received = await sendAndCheck(server, aboutThings(id, key, THERE));
        expect([400, 401, 403]).toContain(received.status);
        if (received.status === 400) continue;
        expect(withoutId(received.text)).toMatchObject(
          received.status === 401 ? { reason: "KEY_REVOKED" } : { code: "PERMISSION_DENIED" },
        );
      }
    }
  },
  TEST_MS,
);
