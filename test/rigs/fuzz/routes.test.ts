/**
 * Every route, with valid, nearly valid and hostile requests made from its own schemas. settings.ts says how
 * to run more of them.
 */
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import * as fc from "fast-check";
import type { TypesDocument } from "../../../src/common/types/document.ts";
import { routeIds, routes, type RouteId } from "../../../src/coordinator/api/contract.ts";
import { withoutCron, wrongEffect } from "./effects.ts";
import { hostileRequests } from "./hostile.ts";
import { MUTATION_COUNT, nearlyValidRequests } from "./mutations.ts";
import { sendAndCheck } from "./oracles.ts";
import { FuzzServer } from "./server.ts";
import { fuzz, TEST_MS, tooFewRuns } from "./settings.ts";
import { sentOf, validRequests, type FuzzRequest } from "./fuzz-request.ts";
import { D1, type Change } from "./state.ts";
import type { Tree } from "./tree.ts";

let server: FuzzServer;
/** The statuses of each route, by layer. */
const seen = new Map<string, Map<number, number>>();

beforeAll(async () => {
  server = await FuzzServer.start();
}, TEST_MS);

afterAll(() => server.stop());

interface Layer {
  make: (id: RouteId, nth?: number) => fc.Arbitrary<FuzzRequest>;
  /** Requests of each route that always come first. Their kinds take turns. */
  each: number;
  runs: number;
}

const layers: Readonly<Record<string, Layer>> = {
  valid: { make: (id) => validRequests(id), each: 3, runs: 240 },
  "nearly valid": { make: nearlyValidRequests, each: 2, runs: 180 },
  hostile: { make: hostileRequests, each: 2, runs: 180 },
};

/** The first requests of a layer, with a kind that is new to its route each time. */
const firstOf = ({ make, each }: Layer): fc.Arbitrary<FuzzRequest>[] =>
  Array.from({ length: each }, (_, turn) =>
    routeIds.map((id, index) => make(id, (turn * routeIds.length + index) % MUTATION_COUNT)),
  ).flat();

/** Routes of the service group always answer the same. Begins are often refused. */
const weights: Partial<Record<string, number>> = { service: 3, webhooks: 2, transfers: 2, leases: 6 };
const weightOf = (id: RouteId): number => weights[routes[id].group] ?? 4;

const anyRoute = (make: (id: RouteId) => fc.Arbitrary<FuzzRequest>): fc.Arbitrary<FuzzRequest> =>
  fc.oneof(...routeIds.map((id) => ({ weight: weightOf(id), arbitrary: make(id) })));

/** Prints the statuses of a long run, to show that not all requests were refused. */
function report(layer: string): void {
  if (!process.env["FUZZ_RUNS"]) return;
  const reported = [...seen].filter(([routeAndLayer]) => routeAndLayer.startsWith(`${layer} `));
  console.log(
    reported
      .map(([routeAndLayer, counts]) => `${routeAndLayer} ${JSON.stringify(Object.fromEntries(counts))}`)
      .join("\n"),
  );
}

describe("every route", () => {
  for (const [layer, each] of Object.entries(layers)) {
    const { make, runs } = each;
    test(
      `${layer} requests get a documented answer and change only the expected rows`,
      async () => {
        const check = async (request: FuzzRequest): Promise<void> => {
          const { status } = await sendAndCheck(server, request);
          const routeAndLayer = `${layer} ${request.id}`;
          const counts = seen.get(routeAndLayer) ?? new Map<number, number>();
          seen.set(routeAndLayer, counts.set(status, (counts.get(status) ?? 0) + 1));
        };
        await fuzz(
          runs,
          anyRoute((id) => make(id)),
          check,
          firstOf(each),
        );
        report(layer);
      },
      TEST_MS,
    );
  }

  test(
    "was called in each layer, and succeeded",
    async ({ skip }) => {
      const tooFew = tooFewRuns(Math.max(...Object.values(layers).map(({ runs }) => runs)));
      if (tooFew !== undefined) skip(tooFew);
      const ways = Object.keys(layers);
      expect(
        routeIds.flatMap((id) =>
          ways.filter((layer) => !seen.has(`${layer} ${id}`)).map((layer) => `${id}, ${layer}`),
        ),
      ).toEqual([]);
      const hasSucceeded = (id: RouteId): boolean =>
        ways.some((layer) => [...(seen.get(`${layer} ${id}`)?.keys() ?? [])].some((status) => status < 300));
      const left = routeIds.filter((id) => !hasSucceeded(id) && !SUCCEED_ELSEWHERE.has(id));
      // After the requests of all layers, all cells may be frozen, or a growth may go on.
      const fresh = await FuzzServer.start();
      onTestFinished(() => fresh.stop());
      const failed: RouteId[] = [];
      for (const id of left) if (!(await succeeds(id, fresh))) failed.push(id);
      expect(failed).toEqual([]);
    },
    TEST_MS,
  );
});

/** Most valid requests of some routes meet a conflict, so this sends more of them. */
async function succeeds(id: RouteId, fresh: FuzzServer): Promise<boolean> {
  for (const request of fc.sample(validRequests(id), { numRuns: 200, seed: 1 }))
    if ((await sendAndCheck(fresh, request)).status < 300) return true;
  return false;
}

/**
 * `changeIdentities`: so much of it excludes other parts that few random ones are sound. It has a test of its
 * own. `cutGrowth`: only many steps of a growth make it possible. The conformance suite cuts.
 */
const SUCCEED_ELSEWHERE: ReadonlySet<RouteId> = new Set(["changeIdentities", "cutGrowth"]);

const CREATE = {
  bucket: { type: "ROUTES", value: "unregistered" },
  subject: { type: "NAMESPACE", id: "1" },
  source: { type: "RAILS_TABLE_ROUTES", id: "1" },
};

test(
  "a change of the set of types changes nothing else",
  async () => {
    const request = { key: "operator", params: {}, query: [], headers: [], notes: [] };
    const read = await sendAndCheck(server, { ...request, id: "getTypes" });
    const { version, types } = JSON.parse(read.text) as { version: number; types: TypesDocument };
    const added = { ...types, bucket_types: { ...types.bucket_types, FZ_ADDED: { number: 4_000 } } };
    const change = (to: object, from: number) =>
      sendAndCheck(server, { ...request, id: "changeTypes", body: { version: from, types: to } as Tree });
    const changed = await change(added, version);
    expect(changed.status).toBe(200);
    const { version: next } = JSON.parse(changed.text) as { version: number };
    expect(next).toBeGreaterThan(version);
    expect((await change(types, version)).status).toBe(409);
    expect((await change(types, next)).status).toBe(200);
  },
  TEST_MS,
);

test(
  "a change of the identities changes nothing else",
  async () => {
    const request = { key: "operator", params: {}, query: [], headers: [], notes: [] };
    const read = await sendAndCheck(server, { ...request, id: "getIdentities" });
    const { version } = JSON.parse(read.text) as { version: number };
    const issuer = {
      name: "fz-added",
      issuer: "https://forge.invalid",
      audience: "leasehold",
      algorithms: ["RS256"],
      jwks_url: "https://forge.invalid/keys",
      rules: [{ claims: { sub: "deployer" }, role: "viewer" }],
    };
    const change = (issuers: object[], from: number) => {
      const body = { version: from, issuers, authorities: [] } as Tree;
      return sendAndCheck(server, { ...request, id: "changeIdentities", body });
    };
    const changed = await change([issuer], version);
    expect(changed.status).toBe(200);
    const { version: next } = JSON.parse(changed.text) as { version: number };
    expect(next).toBeGreaterThan(version);
    expect((await change([], version)).status).toBe(409);
    expect((await change([], next)).status).toBe(200);
  },
  TEST_MS,
);

/** A cell's object exists for good once it was called, so it must not be called for an unregistered cell. */
test(
  "no object is created for unregistered cells",
  async () => {
    let cell = 1_000;
    for (const id of routeIds.filter((each) => routes[each].path.includes("{cell}"))) {
      const [request] = fc.sample(validRequests(id), { numRuns: 1, seed: 1 });
      if (request === undefined) throw new Error("no request");
      cell += 1;
      // A range that fits the schema may end before it begins, so a valid one is used.
      const digests = id === "digestRecords";
      const decides = id === "commitLease" || id === "rollbackLease";
      server.state.changes();
      const about = {
        ...request,
        key: "operator",
        params: { ...request.params, cell: String(cell) },
        ...(decides ? { body: { reason: "x" } } : {}),
        ...(id.startsWith("beginLease") ? { body: { creates: [CREATE] } } : {}),
        ...(digests ? { body: { source_type: "RAILS_TABLE_USERS", ranges: [{}] } } : {}),
      };
      const sent = sentOf(server, about);
      const received = await server.send(sent);
      const mayCall =
        routes[id].roles === "anyone" || (routes[id].roles as readonly string[]).includes("operator");
      expect(received.status, `${id}: ${received.text}`).toBe(mayCall ? 404 : 403);
      expect(withoutCron(server.state.changes(), server), id).toEqual([]);
    }
    const revoked: FuzzRequest = {
      id: "revokeKey",
      key: "operator",
      params: { id: "nobody" },
      query: [],
      body: { cell_id: "999" },
      headers: [],
      notes: [],
    };
    // 429 once the limit on revoked keys is reached.
    expect([404, 429]).toContain((await server.send(sentOf(server, revoked))).status);
    expect(withoutCron(server.state.changes(), server)).toEqual([]);
  },
  TEST_MS,
);

test(
  "a read that deletes a row is found",
  async () => {
    const read: FuzzRequest = {
      id: "listStaleLeases",
      key: "operator",
      params: {},
      query: [["older_than_s", "0"]],
      headers: [],
      notes: [],
    };
    const received = await server.send(sentOf(server, read));
    const [before] = server.state.rows(/^d1$/, "cells");
    const gone: Change = { object: D1, table: "cells", key: "", before, after: undefined };
    expect(wrongEffect([], read, received, server)).toBeUndefined();
    expect(wrongEffect([gone], read, received, server)).toMatch(/another row/);
  },
  TEST_MS,
);
